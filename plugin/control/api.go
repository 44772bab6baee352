package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// api answers what comes over the socket. Each reply is a JSON object; one with a status of 400 and more has the member
// error.
type api struct {
	state      *state
	controller *caddy.Controller

	begun sync.Once
	since time.Time
}

// route is one thing that can be asked, or done.
type route struct {
	method, path, help string
	serve              func(a *api, r *http.Request) (any, error)
}

// routes is all of them, as GET / lists them; those whose reply is
// another are beside.
var routes []route

func init() {
	routes = []route{
		{"GET", "/v1/status", "version, process, listeners", (*api).status},
		{"GET", "/v1/cache", "what the caches hold: totals, or with name=NAME, zone=ZONE or all=true the answers; type=TYPE, limit=N", (*api).cache},
		{"POST", "/v1/cache/flush", "forget answers: name=NAME, zone=ZONE or all=true; type=TYPE", (*api).flush},
		{"GET", "/v1/zones", "zones with their serials, ages, and when they are looked at next; name=ZONE", (*api).zones},
		{"POST", "/v1/zones/freeze", "refuse updates of a zone: name=ZONE", (*api).freeze},
		{"POST", "/v1/zones/thaw", "take updates of a zone again: name=ZONE", (*api).thaw},
		{"GET", "/v1/transfers", "the last zone transfers, out and in", (*api).transfers},
		{"GET", "/v1/upstreams", "upstreams with health, latency and errors", (*api).upstreams},
		{"GET", "/v1/connections", "connections, queries in flight, and what was refused by a limit", (*api).connections},
		{"GET", "/v1/limits", "limits of the listeners and of the process", (*api).limits},
		{"GET", "/v1/top", "what came most often: what=names|nxdomain|clients|types|rcodes, n=N", (*api).top},
		{"POST", "/v1/top/reset", "count anew", (*api).resetTop},
		{"GET", "/v1/recurse/zone", "the servers at which a query for a name begins: name=NAME", (*api).delegation},
		{"GET", "/v1/recurse/server", "what is known of a server of zones: address=IP", (*api).server},
		{"GET", "/v1/anchors", "keys of trust anchors, and negative trust anchors", (*api).anchors},
		{"POST", "/v1/nta/add", "do not validate a name for a while: name=NAME, duration=DURATION", (*api).addNegative},
		{"POST", "/v1/nta/del", "validate it again: name=NAME", (*api).dropNegative},
		{"GET", "/v1/certificates", "certificates of the listeners with their ends", (*api).certificates},
		{"GET", "/v1/log", "the log level", (*api).logLevel},
		{"POST", "/v1/log", "set the log level: level=debug|info", (*api).setLogLevel},
		{"GET", "/v1/explain", "ask a question and tell its way: name=NAME, type=TYPE, client=ADDRESS, transport=TRANSPORT, do=true", (*api).explain},
		{"POST", "/v1/reload", "read the Corefile again, and wait until it is served, or refused", (*api).reload},
		{"POST", "/v1/drain", "answer what has come, and end the process", (*api).drain},
	}
}

// handler serves all routes.
func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+r.path, checked(r.help, func(w http.ResponseWriter, req *http.Request) {
			v, err := r.serve(a, req)
			reply(w, v, err)
		}))
	}
	mux.HandleFunc("GET /v1/tail", checked(tailHelp, a.tail))
	mux.HandleFunc("GET /v1/zones/export", checked(exportHelp, a.export))
	mux.HandleFunc("GET /{$}", a.index)
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		reply(w, nil, &refusal{http.StatusNotFound, fmt.Sprintf("there is no %s %s: GET / lists what there is", req.Method, req.URL.Path)})
	})
	a.begun.Do(func() { a.since = time.Now() })
	return mux
}

// Help for what replies with something else than one JSON object.
const (
	tailHelp   = "queries as they are answered, a line each: name=NAME, type=TYPE, rcode=RCODE, client=NETWORK, slower=DURATION, failed=true, n=N"
	exportHelp = "a zone as a master file, text and not JSON: name=ZONE"
)

// checked is serve for requests with the parameters that help names, NAME=..., and no others: "tpye=A" would be all
// types.
func checked(help string, serve http.HandlerFunc) http.HandlerFunc {
	var names []string
	for _, word := range strings.Fields(help) {
		if name, _, ok := strings.Cut(word, "="); ok {
			names = append(names, name)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			reply(w, nil, refusef("%v", err))
			return
		}
		for name := range r.Form {
			if !slices.Contains(names, name) {
				reply(w, nil, refusef("there is no parameter %q: %s", name, help))
				return
			}
		}
		serve(w, r)
	}
}

// refusal is an error of who asks, with its HTTP status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refusef(format string, args ...any) error {
	return &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// reply writes v, or the error.
func reply(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		var r *refusal
		if errors.As(err, &r) {
			status = r.status
		}
		v = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // who does not read it has gone
}

// index lists what there is.
func (a *api) index(w http.ResponseWriter, _ *http.Request) {
	type item struct {
		Method string `json:"method"`
		Path   string `json:"path"`
		Help   string `json:"help"`
	}
	all := []item{}
	for _, r := range routes {
		all = append(all, item{r.method, r.path, r.help})
	}
	all = append(all, item{"GET", "/v1/tail", tailHelp})
	all = append(all, item{"GET", "/v1/zones/export", exportHelp})
	reply(w, map[string]any{"routes": all}, nil)
}

func (a *api) status(*http.Request) (any, error) {
	type listener struct {
		Address string   `json:"address"`
		Zones   []string `json:"zones"`
	}
	listeners := []listener{}
	for _, s := range dnsserver.Servers(a.controller) {
		l := listener{Address: s.Addr}
		for _, c := range dnsserver.Configs(a.controller) {
			if s.Serves(c) {
				l.Zones = append(l.Zones, c.Zone)
			}
		}
		listeners = append(listeners, l)
	}
	return map[string]any{
		"name": caddy.AppName, "version": caddy.AppVersion, "go": runtime.Version(), "pid": os.Getpid(),
		"configuredSince": a.since, "corefile": dnsserver.Instance(a.controller).Caddyfile().Path(), "listeners": listeners,
	}, nil
}

// handlers is the plugins of all blocks, each once, in file order.
func (a *api) handlers() (all []plugin.Handler) {
	seen := map[any]bool{}
	for _, c := range dnsserver.Configs(a.controller) {
		if c != c.Block() {
			continue // the other keys have the same
		}
		for _, h := range c.Chain() {
			var key any = h
			if !comparable(h) {
				all = append(all, h)
				continue
			}
			if !seen[key] {
				seen[key] = true
				all = append(all, h)
			}
		}
	}
	return all
}

// comparable reports whether a handler can be a key: values with slices and maps in them cannot.
func comparable(h plugin.Handler) (ok bool) {
	defer func() { ok = recover() == nil }()
	return h == h
}

// typeOf reads a type of records; "" is 0, any.
func typeOf(text string) (uint16, error) {
	if text == "" {
		return 0, nil
	}
	if t, ok := dnsutil.TypeOf(text); ok {
		return t, nil
	}
	return 0, refusef("unknown type %q", text)
}

// nameParameter reads the parameter name, lower and in wire form; what says what it must be.
func nameParameter(r *http.Request, what string) ([]byte, error) {
	text := r.FormValue("name")
	name, err := wire.LowerName(dns.Fqdn(text))
	if err != nil || text == "" {
		return nil, refusef("name must be %s: %q", what, text)
	}
	return name, nil
}

// number reads a parameter that is a number from 1 to most; def is that of a request without it.
func number(r *http.Request, name string, def, most int) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, refusef("%s must be a number from 1 to %d: %q", name, most, text)
	}
	return n, nil
}

// truth reads a parameter that is true or false; false is that of a request without it.
func truth(get func(string) string, name string) (bool, error) {
	switch text := get(name); text {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, refusef("%s must be true or false: %q", name, text)
	}
}

// oneOf reads a parameter that is one of words; the first is that of a request without it.
func oneOf(r *http.Request, name string, words ...string) (string, error) {
	text := r.FormValue(name)
	if text == "" {
		return words[0], nil
	}
	if !slices.Contains(words, text) {
		return "", refusef("%s must be one of %s: %q", name, strings.Join(words, ", "), text)
	}
	return text, nil
}

// tail shows queries as they are answered.
func (a *api) tail(w http.ResponseWriter, r *http.Request) {
	m, err := newMatcher(r.FormValue)
	if err != nil {
		reply(w, nil, refusef("%v", err))
		return
	}
	n := 0
	if r.FormValue("n") != "" {
		if n, err = number(r, "n", 1, 1<<30); err != nil {
			reply(w, nil, err)
			return
		}
	}
	if err := a.state.tails.follow(r.Context(), w, m, n); err != nil {
		reply(w, nil, &refusal{http.StatusServiceUnavailable, err.Error()})
	}
	_, _ = io.Copy(io.Discard, r.Body)
}
