package control

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/endpoint"
	"github.com/coredns/coredns/plugin/pkg/parse"
	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// DefaultSocket is where the socket is if the directive does not say.
const DefaultSocket = status.DefaultSocket

// settings is what the directive configures.
type settings struct {
	socket string
	top    bool
	page   string // HOST:PORT of the status page, "" if there is none
}

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Once: true,
	Args: corefile.Args[settings]{Syntax: "[SOCKET]", Max: 1, Set: func(s *settings, l *corefile.Line) error {
		if len(l.Args) == 0 {
			return nil
		}
		s.socket = strings.TrimPrefix(l.Args[0], "unix://")
		if len(s.socket) > maxSocket {
			return fmt.Errorf("the path of the socket '%s' is too long: must be at most %d octets", s.socket, maxSocket)
		}
		if strings.Contains(s.socket, "://") || strings.HasPrefix(s.socket, ":") {
			return fmt.Errorf("'%s' is no path of a unix socket: must be one such as %s", s.socket, DefaultSocket)
		}
		return nil
	}},
	Options: corefile.Table[settings]{
		corefile.Enum("top", []string{"on", "off"}, "count which names, clients and types come most often; on is the default", func(s *settings, word string) { s.top = word == "on" }),
		corefile.Row("status", "[ADDRESS]", "show a page at HOST:PORT, for browsers", 0, 1, func(s *settings, l *corefile.Line) error {
			if s.page = DefaultPage; len(l.Args) == 0 {
				return nil
			}
			s.page = l.Args[0]
			if err := parse.ListenAddr(s.page); err != nil {
				return fmt.Errorf("'%s' is no address: must be HOST:PORT such as %s", s.page, DefaultPage)
			}
			return nil
		}),
	},
})

// maxSocket is how long the path of a socket may be: the kernel takes 107 octets (unix(7)), and the socket is made in a
// folder beside.
const maxSocket = 90

// onlyKey is the instance's key for: a block has the directive.
type onlyKey struct{}

func setup(c *caddy.Controller) error {
	s := settings{socket: DefaultSocket, top: true}
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	if c.Get(onlyKey{}) != nil {
		return plugin.Error(pluginName, c.Err("another block has it: one is for the whole configuration"))
	}
	c.Set(onlyKey{}, true)
	socket := corefile.Below(dnsserver.GetConfig(c).Root, s.socket)
	if path, err := filepath.Abs(socket); err == nil {
		socket = path
	}
	st := useState(socket, s.top)
	dnsserver.OnEnd(c, func() error { leaveState(socket, st); return nil })
	seen := map[*dnsserver.Config]bool{}
	for _, cfg := range dnsserver.Configs(c) {
		if first := cfg.Block(); !seen[first] {
			seen[first] = true
			first.AddPlugin(func(next plugin.Handler) plugin.Handler { return observer{next, st} })
		}
	}
	a := &api{state: st, controller: c}
	endpoint.Manage(c, endpoint.Spec{
		Addr: "unix://" + socket, Handlers: map[string]http.Handler{"/": a.handler()}, Long: true,
		BeforeClose: st.tails.end, // the endpoint waits for its requests
	})
	if s.page != "" {
		endpoint.Manage(c, endpoint.Spec{Addr: s.page, Handlers: a.pageHandlers()})
	}
	return nil
}
