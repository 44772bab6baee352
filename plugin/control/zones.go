package control

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"net/http"
	"sort"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

func (a *api) zones(r *http.Request) (any, error) {
	only := ""
	if text := r.FormValue("name"); text != "" {
		if _, err := nameParameter(r, "a zone"); err != nil {
			return nil, err
		}
		only = dns.CanonicalName(text)
	}
	return map[string]any{"zones": a.allZones(only)}, nil
}

// allZones is the zones of all plugins by name, or the one with the name only.
func (a *api) allZones(only string) []status.Zone {
	all := []status.Zone{}
	for _, h := range a.handlers() {
		if z, ok := h.(status.Zones); ok {
			for _, s := range z.ZoneStatus() {
				if only == "" || s.Name == only {
					all = append(all, s)
				}
			}
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// freeze has updates of a zone refused, thaw has them taken again.
func (a *api) freeze(r *http.Request) (any, error) { return a.setFrozen(r, true) }

func (a *api) thaw(r *http.Request) (any, error) { return a.setFrozen(r, false) }

func (a *api) setFrozen(r *http.Request, on bool) (any, error) {
	name, err := zoneName(r)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, h := range a.handlers() {
		if f, ok := h.(status.Freezer); ok && f.FreezeZone(name, on) {
			n++
		}
	}
	if n == 0 {
		return nil, &refusal{http.StatusNotFound, "there is no zone " + name + " that clients may change"}
	}
	return map[string]any{"zone": name, "frozen": on}, nil
}

// zoneName reads the parameter name, fully qualified and in lower case.
func zoneName(r *http.Request) (string, error) {
	name, err := nameParameter(r, "a zone")
	if err != nil {
		return "", err
	}
	return wire.Text(name), nil
}

// export writes a zone as a master file, text and not JSON. All of it is of one version.
func (a *api) export(w http.ResponseWriter, r *http.Request) {
	name, err := zoneName(r)
	if err != nil {
		reply(w, nil, err)
		return
	}
	for _, h := range a.handlers() {
		write := writerOf(h, name)
		if write == nil {
			continue
		}
		w.Header().Set("Content-Type", "text/dns") // RFC 4027
		if write(w) != nil {
			panic(http.ErrAbortHandler) // so that nobody takes a part for the whole
		}
		return
	}
	reply(w, nil, &refusal{http.StatusNotFound, "there is no zone " + name + ", or it has no data that may be sent"})
}

// transferable is a plugin that has zones to transfer, as package transfer has it.
type transferable interface {
	Transfer(zone string, serial uint32) (<-chan []dns.RR, error)
}

// writerOf writes a zone of h as a master file; it is nil if h has no such zone, or none that may be sent.
func writerOf(h plugin.Handler, name string) func(io.Writer) error {
	switch source := h.(type) {
	case zone.Versions:
		if v, err := source.Version(name); err == nil {
			return v.WriteText
		}
	case transferable:
		if records, err := source.Transfer(name, 0); err == nil {
			return func(w io.Writer) error { return writeRecords(w, records) }
		}
	}
	return nil
}

var errPart = errors.New("the plugin has broken off the transfer")

// writeRecords writes a transfer without the SOA record at its end, which tells that all of it has come. It is read to its end
// in any case.
func writeRecords(w io.Writer, records <-chan []dns.RR) (err error) {
	out, soas := bufio.NewWriter(w), 0
	for some := range records {
		for _, rr := range some {
			if rr.Header().Rrtype == dns.TypeSOA {
				if soas++; soas > 1 {
					continue
				}
			}
			if err == nil {
				_, err = out.WriteString(rr.String() + "\n")
			}
		}
	}
	if soas < 2 && err == nil {
		err = errPart
	}
	return cmp.Or(err, out.Flush())
}
