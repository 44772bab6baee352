package control

import (
	"errors"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

func (a *api) logLevel(*http.Request) (any, error) {
	level := "info"
	if log.D.Value() {
		level = "debug"
	}
	return map[string]string{"level": level}, nil
}

// setLogLevel holds for the process until the next reload, which sets it as the configuration says.
func (a *api) setLogLevel(r *http.Request) (any, error) {
	if r.FormValue("level") == "" {
		return nil, refusef("level is missing: must be one of info, debug")
	}
	level, err := oneOf(r, "level", "info", "debug")
	if err != nil {
		return nil, err
	}
	if level == "debug" {
		log.D.Set()
	} else {
		log.D.Clear()
	}
	return a.logLevel(r)
}

// explained is an Explanation with the reply as dig has it.
type explained struct {
	*dnsserver.Explanation
	Rcode string `json:"rcode,omitempty"`
	Text  string `json:"reply,omitempty"` // "" if there is no reply
}

func (a *api) explain(r *http.Request) (any, error) {
	q, err := questionOf(r.FormValue)
	if err != nil {
		return nil, err
	}
	e, err := dnsserver.Explain(r.Context(), dnsserver.Servers(a.controller), q)
	if err != nil {
		return nil, refusef("%v", err)
	}
	out := explained{Explanation: e}
	if e.Reply != nil {
		out.Rcode, out.Text = dns.RcodeToString[e.Reply.Rcode], e.Reply.String()
	}
	return out, nil
}

// questionOf reads the parameters name, type, client, transport and do.
func questionOf(get func(string) string) (q dnsserver.Question, err error) {
	if _, err := wire.LowerName(dns.Fqdn(get("name"))); err != nil || get("name") == "" {
		return q, refusef("name must be a domain name: %q", get("name"))
	}
	q.Name, q.Transport = dns.Fqdn(get("name")), strings.ToLower(get("transport"))
	if q.DO, err = truth(get, "do"); err != nil {
		return q, err
	}
	if q.Type, err = typeOf(get("type")); err != nil {
		return q, err
	}
	if q.Type == 0 {
		q.Type = dns.TypeA
	}
	if text := get("client"); text != "" {
		if q.Client, err = netip.ParseAddrPort(text); err != nil {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return q, refusef("client must be an address: %q", text)
			}
			q.Client = netip.AddrPortFrom(addr, 40000)
		}
	}
	return q, nil
}

// reloading lets one reload run at a time.
var reloading sync.Mutex

// reload restarts the instance with the configuration as it is now, and tells what came of it. It goes on if who asked
// goes away.
func (a *api) reload(r *http.Request) (any, error) {
	if !reloading.TryLock() {
		return nil, &refusal{http.StatusConflict, "another reload is under way"}
	}
	ended := make(chan error, 1)
	begin := time.Now()
	go func() {
		defer reloading.Unlock()
		ended <- reload(dnsserver.Instance(a.controller))
	}()
	select {
	case err := <-ended:
		if errors.Is(err, dnsserver.ErrReplaced) {
			return nil, &refusal{http.StatusConflict, "another reload was under way, and is over: ask again for one with what has changed since"}
		}
		if err != nil {
			return nil, &refusal{http.StatusUnprocessableEntity, "the configuration was refused, and the one before goes on: " + err.Error()}
		}
		return map[string]any{"reloaded": true, "ms": float64(time.Since(begin)) / float64(time.Millisecond)}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// reload reads the Corefile again, and has the instance replaced.
func reload(i *caddy.Instance) error {
	input, err := dnsserver.Reread(i)
	if err != nil {
		return err
	}
	_, err = i.Restart(input)
	return corefile.Explain(err, input.Path(), input.Body(), dnsserver.Directives)
}

// drain ends the process as SIGTERM does: what has come is answered, sockets are read to their end, and health's
// lameduck is kept.
func (a *api) drain(*http.Request) (any, error) {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return nil, err
	}
	time.AfterFunc(50*time.Millisecond, func() { // the reply goes first
		if err := p.Signal(endSignal); err != nil {
			log.Errorf("%s: drain: %v", pluginName, err)
		}
	})
	return map[string]any{"draining": true, "pid": os.Getpid()}, nil
}
