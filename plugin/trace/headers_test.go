package trace

import (
	"testing"

	ot "github.com/opentracing/opentracing-go"
)

// FuzzHeaders: whatever stands in the headers of a request, a context that is found in them is one, and is handed on as
// it is.
func FuzzHeaders(f *testing.F) {
	const trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, seed := range [][6]string{
		{"00-" + trace + "-" + span + "-01"},
		{"00-" + trace + "-" + span + "-00-more"},
		{"ff-" + trace + "-" + span + "-01", trace + "-" + span + "-d-" + span},
		{"", "0"},
		{"00-", trace[16:] + "-" + span},
		{"", "", trace, span, span, "1"},
		{"", "", trace[16:], span, "x", "false"},
		{"---", "----", "", "", "", "0"},
		{"00-00000000000000000000000000000000-0000000000000000-01", "", trace, "0000000000000000"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5])
	}
	t := new(tracer)
	f.Fuzz(func(test *testing.T, w3c, single, trace, span, parent, sampled string) {
		in := ot.TextMapCarrier{traceParent: w3c, b3Single: single, b3Trace: trace, b3Span: span, b3Parent: parent, b3Sampled: sampled}
		found, err := t.Extract(ot.HTTPHeaders, in)
		if err != nil {
			return
		}
		c := found.(spanContext)
		if (c.trace == traceID{} || c.span == spanID{}) && !c.unsampled {
			test.Fatalf("of %v comes %+v", in, c)
		}
		out := ot.TextMapCarrier{}
		if err := t.Inject(c, ot.HTTPHeaders, out); err != nil {
			test.Fatal(err)
		}
		again, err := t.Extract(ot.HTTPHeaders, out)
		c.parent = spanID{} // which is not handed on
		if err != nil || again.(spanContext) != c {
			test.Fatalf("%+v is handed on as %v, %v", c, out, err)
		}
	})
}
