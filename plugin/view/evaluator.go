package view

import (
	"context"
	"net/netip"
	"strconv"
	"sync"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/expression"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/expr-lang/expr/vm"
	"github.com/miekg/dns"
)

// evaluator is what the expressions of a view need while they look at one query. It is used again for others.
type evaluator struct {
	ctx context.Context
	q   *wire.Query
	own wire.Query // what q is, if the query came as a message

	name   []byte // as presented, in lower case; empty: not yet read
	a, b   []byte // operands of the comparison at hand
	failed bool   // a function had an error

	machine vm.VM
	env     map[string]any // the functions, for machine
}

var evaluators = sync.Pool{New: func() any {
	e := new(evaluator)
	e.env = e.functions()
	return e
}}

func (e *evaluator) free() {
	e.ctx, e.q, e.name = nil, nil, e.name[:0]
	evaluators.Put(e)
}

// functions is what expressions may call, for the query that e looks at when they do.
func (e *evaluator) functions() map[string]any {
	env := expression.DefaultEnv(context.Background(), nil)
	for name, t := range texts {
		env[name] = func() string { return string(t(e, nil)) }
	}
	for name, n := range numbers {
		env[name] = func() int { return n(e) }
	}
	env["do"] = func() bool { return e.q.DO() }
	env["metadata"] = func(label string) string {
		if f := metadata.ValueFunc(e.ctx, label); f != nil {
			return f()
		}
		return ""
	}
	return env
}

// texts are the functions that give a text, which they append to b.
var texts = map[string]func(e *evaluator, b []byte) []byte{
	"name":        func(e *evaluator, b []byte) []byte { return append(b, e.nameText()...) },
	"type":        func(e *evaluator, b []byte) []byte { return append(b, dns.Type(e.q.Type()).String()...) },
	"class":       func(e *evaluator, b []byte) []byte { return append(b, dns.Class(e.q.Class()).String()...) },
	"proto":       func(e *evaluator, b []byte) []byte { return append(b, e.q.Proto.String()...) },
	"client_ip":   func(e *evaluator, b []byte) []byte { return e.q.Client.Addr().AppendTo(b) },
	"server_ip":   func(e *evaluator, b []byte) []byte { return e.q.Local.Addr().AppendTo(b) },
	"port":        func(e *evaluator, b []byte) []byte { return strconv.AppendUint(b, uint64(e.q.Client.Port()), 10) },
	"server_port": func(e *evaluator, b []byte) []byte { return strconv.AppendUint(b, uint64(e.q.Local.Port()), 10) },
}

// numbers are the functions that give a number.
var numbers = map[string]func(e *evaluator) int{
	"size":    func(e *evaluator) int { return e.q.Len() },
	"bufsize": func(e *evaluator) int { return int(edns.Size(e.q.Proto.String(), e.q.EDNS().Size)) },
	"id":      func(e *evaluator) int { return int(e.q.ID()) },
	"opcode":  func(e *evaluator) int { return int(e.q.Flags() >> 11 & 0xF) },
}

// addresses are those of texts that are addresses.
var addresses = map[string]func(e *evaluator) netip.Addr{
	"client_ip": func(e *evaluator) netip.Addr { return e.q.Client.Addr() },
	"server_ip": func(e *evaluator) netip.Addr { return e.q.Local.Addr() },
}

func (e *evaluator) nameText() []byte {
	if len(e.name) == 0 {
		e.name = wire.AppendText(e.name, e.q.Lower())
	}
	return e.name
}
