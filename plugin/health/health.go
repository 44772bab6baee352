// Package health serves an endpoint that tells whether the process lives: it answers OK to whoever asks.
//
//	GET /health ──▶ OK
//	selfcheck.go: asks its own endpoint each second ──▶ metrics, warnings
//	lameduck.go: before the process ends, goes on answering for a while
//
// The endpoint survives reloads, those that fail too. Blocks of a Corefile that name one address share one endpoint.
// Start at setup.
package health

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/coredns/caddy"
)

const (
	pluginName  = "health"
	defaultAddr = ":8080"
	path        = "/health"
)

var logger = log.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	addr     string
	lameduck time.Duration
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[ADDRESS]", Max: 1, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		s.addr = l.Args[0]
		return parse.ListenAddr(s.addr)
	}},
	Options: corefile.Table[settings]{
		corefile.Row("lameduck", "DURATION", "go on answering for so long before the process ends", 1, 1, func(s *settings, l *corefile.Line) (err error) {
			if s.lameduck, err = time.ParseDuration(l.Args[0]); err != nil {
				return l.Errf("unable to parse lameduck duration value: '%v' : %w: must be a duration such as 5s", l.Args[0], err)
			}
			return nil
		}),
	},
})

func setup(c *caddy.Controller) error {
	s := settings{addr: defaultAddr}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	duck := instanceDuck(c)
	spec := endpoint.Spec{
		Addr:        s.addr,
		Handlers:    map[string]http.Handler{path: http.HandlerFunc(alive)},
		BeforeClose: func() { duck.wait(s.lameduck) },
	}
	if first := c.Get(checkedKey{s.addr}) == nil; first {
		c.Set(checkedKey{s.addr}, true)
		check := new(selfCheck)
		spec.Opened = func(a net.Addr) { check.start(probeURL(s.addr, a)) }
		spec.Closed = check.stop
	}
	endpoint.Manage(c, spec)
	return nil
}

// checkedKey is the instance's key for: the endpoint at addr has a self-check.
type checkedKey struct{ addr string }

// alive answers OK.
func alive(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, http.StatusText(http.StatusOK)) }
