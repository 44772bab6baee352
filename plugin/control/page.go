package control

import (
	_ "embed"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/coredns/caddy"
)

// DefaultPage is where the page is, if the option status names no address.
const DefaultPage = "127.0.0.1:9154"

//go:embed page.html
var page []byte

// pageData is what the page shows. The page asks for it again and again.
type pageData struct {
	Time      time.Time            `json:"time"`
	Name      string               `json:"name"`
	Version   string               `json:"version"`
	Queries   uint64               `json:"queries"`
	Rcodes    []ranked             `json:"rcodes"`
	Latency   []bucket             `json:"latency"`
	Caches    []status.CacheStatus `json:"caches"`
	Upstreams []status.Upstream    `json:"upstreams"`
	Zones     []status.Zone        `json:"zones"`
	Names     []ranked             `json:"names"`
	Missing   []ranked             `json:"nxdomain"`
	Types     []ranked             `json:"types"`
	Listeners any                  `json:"listeners"`
}

// bucket is the replies that took no longer than it says, and longer than the one before.
type bucket struct {
	UpTo  string `json:"upTo"`
	Count uint64 `json:"count"`
}

// pageHandlers serves the page and its data, and nothing that changes anything.
func (a *api) pageHandlers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /{$}": readOnly(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page) // who does not read it has gone
		}),
		"GET /data": readOnly(func(w http.ResponseWriter, r *http.Request) {
			d, err := a.pageData(r)
			reply(w, d, err)
		}),
	}
}

// readOnly is a handler that browsers keep to itself. It answers only under an address, or the name localhost: else a
// page of somebody else could have a name that he makes lead here (DNS rebinding).
func readOnly(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err != nil && host != "localhost" {
			reply(w, nil, &refusal{http.StatusForbidden, "the page is shown under the address of the server, or localhost, only"})
			return
		}
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		serve(w, r)
	})
}

// mostShown is how many rows the tables of the page have.
const mostShown = 15

// pageData collects all.
func (a *api) pageData(r *http.Request) (*pageData, error) {
	d := &pageData{
		Time: time.Now(), Name: caddy.AppName, Version: caddy.AppVersion, Latency: []bucket{}, Caches: []status.CacheStatus{},
		Upstreams: a.allUpstreams(), Zones: a.allZones(""),
	}
	if err := measure(d.Upstreams); err != nil {
		return nil, err
	}
	for _, c := range a.caches() {
		d.Caches = append(d.Caches, c.CacheStatus())
	}
	d.Zones = d.Zones[:min(len(d.Zones), 100)]
	d.Rcodes, d.Queries = a.rank("rcodes", mostShown)
	d.Names, _ = a.rank("names", mostShown)
	d.Missing, _ = a.rank("nxdomain", mostShown)
	d.Types, _ = a.rank("types", mostShown)
	listeners, err := a.connections(r)
	if err != nil {
		return nil, err
	}
	d.Listeners = listeners.(map[string]any)["listeners"]
	d.Latency, err = latency()
	return d, err
}

// latency is how long replies took, of all servers, as prometheus measures it; none if it does not.
func latency() ([]bucket, error) {
	fs, err := families("dns_request_duration_seconds")
	if err != nil {
		return nil, err
	}
	var upTo []float64
	counts := map[float64]uint64{} // of replies up to there, those before included
	var total uint64
	for _, f := range fs {
		for _, m := range f.GetMetric() {
			total += m.GetHistogram().GetSampleCount()
			for _, b := range m.GetHistogram().GetBucket() {
				if _, known := counts[b.GetUpperBound()]; !known {
					upTo = append(upTo, b.GetUpperBound())
				}
				counts[b.GetUpperBound()] += b.GetCumulativeCount()
			}
		}
	}
	all, before := []bucket{}, uint64(0)
	for _, u := range upTo {
		all = append(all, bucket{time.Duration(u * float64(time.Second)).String(), counts[u] - before})
		before = counts[u]
	}
	if total > before {
		all = append(all, bucket{"longer", total - before})
	}
	return all, nil
}
