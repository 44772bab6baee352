// Package whoami answers each query with what the server sees of the client: address, port and transport. Start at
// answer.
package whoami

import (
	"context"
	"encoding/binary"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const pluginName = "whoami"

func init() { plugin.Register(pluginName, setup) }

// Whoami tells clients who they are. It passes nothing on.
type Whoami struct{}

// Name is the plugin's name.
func (wh Whoami) Name() string { return pluginName }

// ServeDNS answers.
func (wh Whoami) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	adapter, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, plugin.Error(pluginName, err)
	}
	defer adapter.Free()
	answer(&adapter.Reply, &adapter.Query)
	return adapter.Write()
}

// ServeWire answers.
func (wh Whoami) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	answer(w, q)
	return wire.Done
}

// WireSelf returns wh.
func (wh Whoami) WireSelf() plugin.Handler { return wh }

// Prompt implements plugin.Prompt.
func (wh Whoami) Prompt() bool { return true }

const srvLen = 7 // octets of an SRV record's RDATA whose target is the root

// answer puts the client's address, at the name that was asked for, and its port, in an SRV record below
// _udp or _tcp, into the additional section.
func answer(w *wire.Reply, q *wire.Query) {
	w.Begin(q)
	w.SetWriter(pluginName)
	w.SetFlag(wire.FlagAA, true)
	if ip := q.Client.Addr(); ip.IsValid() {
		typ := uint16(wire.TypeAAAA)
		if ip.Is4() {
			typ = wire.TypeA
		}
		var rdata [16]byte
		n := copy(rdata[:], ip.AsSlice())
		w.Record(wire.Additional, q.Name(), typ, q.Class(), 0, rdata[:n])
	}
	label := "\x04_udp"
	if q.Proto == wire.TCP {
		label = "\x04_tcp"
	}
	var owner [wire.MaxName + 5]byte
	name := append(append(owner[:0], label...), q.Name()...)
	if len(name) > wire.MaxName {
		return // there is no room for the label
	}
	var rdata [srvLen]byte // priority 0, weight 0, port, the root
	binary.BigEndian.PutUint16(rdata[4:], q.Client.Port())
	w.Record(wire.Additional, name, wire.TypeSRV, q.Class(), 0, rdata[:])
}

// settings is what the directive configures: nothing.
type settings struct{}

var directive = corefile.Define(&corefile.Directive[settings]{Name: pluginName})

func setup(c *caddy.Controller) error {
	if err := directive.Parse(c, new(settings)); err != nil {
		return err
	}
	dnsserver.GetConfig(c).AddPlugin(func(plugin.Handler) plugin.Handler { return Whoami{} })
	return nil
}
