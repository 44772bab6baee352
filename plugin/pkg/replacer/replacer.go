// Package replacer writes lines about queries after a format with variables, as the log and dnstap plugins do.
//
//	"{remote} {type} {/view/name}" ──Parse──▶ Format ──Append──▶ "192.0.2.1 A internal"
//	                                                  ▲
//	request.Request + dnstest.Recorder ──▶ Facts ─────┤   message lane
//	wire.Query + wire.Reply ─────────────▶ Facts ─────┘   wire lane
//
// A format is parsed once; a Format never changes and may be used by any number of goroutines. Facts are one
// query's and belong to one goroutine. Writing a line allocates nothing, unless the format has labels of metadata
// in it.
//
// Start at Parse and Facts. variable.go has the list of variables.
package replacer

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/request"
)

// EmptyValue stands for what is not known.
const EmptyValue = "-"

// Replacer replaces the variables in formats.
type Replacer struct{}

// New returns a Replacer.
func New() Replacer { return Replacer{} }

// Replace returns the format s with the values of the query state and of the reply that rr recorded. Without rr,
// all that a reply tells is EmptyValue. Labels of metadata are read from ctx.
func (r Replacer) Replace(ctx context.Context, state request.Request, rr *dnstest.Recorder, s string) string {
	var f Facts
	f.SetRequest(&state)
	if rr != nil {
		f.SetRecorder(rr)
	}
	return string(Parse(s).Append(make([]byte, 0, 256), ctx, &f))
}
