// Package pprof serves the profiles of Go's runtime over HTTP. Start at setup.
package pprof

import (
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"strconv"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/parse"

	"github.com/coredns/caddy"
)

const (
	pluginName  = "pprof"
	defaultAddr = "localhost:6053"
	path        = "/debug/pprof"
)

var logger = log.NewWithPlugin(pluginName)

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct {
	addr      string
	blockRate int // of the block profile, 0 is none
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[ADDRESS]", Max: 1, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		s.addr = l.Args[0]
		return parse.ListenAddr(s.addr)
	}},
	Options: corefile.Table[settings]{
		corefile.Row("block", "[RATE]", "profile what waits, one event in so many nanoseconds", 0, 1, func(s *settings, l *corefile.Line) (err error) {
			s.blockRate = 1
			if len(l.Args) > 0 {
				if s.blockRate, err = strconv.Atoi(l.Args[0]); err != nil {
					return l.Errf("property 'block' invalid integer value '%v': must be a number of nanoseconds", l.Args[0])
				}
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
	lease := endpoint.New(c.Context(), endpoint.Spec{
		Addr:     s.addr,
		Handlers: handlers(),
		Long:     true, // a profile takes the time that is asked for
		Opened:   func(net.Addr) { runtime.SetBlockProfileRate(s.blockRate) },
	})
	c.OnStartup(func() error {
		err := lease.Open()
		if err != nil {
			logger.Errorf("Failed to start pprof handler: %s", err)
		}
		return err
	})
	lease.Follow(c)
	return nil
}

// handlers are all profiles by path.
func handlers() map[string]http.Handler {
	return map[string]http.Handler{
		path:              http.RedirectHandler(path+"/", http.StatusFound),
		path + "/":        http.HandlerFunc(pprof.Index), // and the named profiles
		path + "/cmdline": http.HandlerFunc(pprof.Cmdline),
		path + "/profile": http.HandlerFunc(pprof.Profile),
		path + "/symbol":  http.HandlerFunc(pprof.Symbol),
		path + "/trace":   http.HandlerFunc(pprof.Trace),
	}
}
