package tsig

import (
	"context"

	"github.com/coredns/coredns/plugin"

	"github.com/miekg/dns"
)

// identity is the context key of the signature of a query that was found good, a Signature.
type identity struct{}

// Signature tells one signed query from all others: who signed it, when, and the MAC itself.
type Signature struct {
	Key  string // fully qualified and in lower case
	Time uint64 // seconds since 1970
	MAC  string // in hexadecimal digits
}

// Validated is the signature of the query of ctx. It reports false unless that was found good, and the query is for a
// zone of the tsig plugin above: then nobody knows who asks.
func Validated(ctx context.Context) (Signature, bool) {
	s, ok := ctx.Value(identity{}).(Signature)
	return s, ok
}

// ValidatedKeyName is the name of the key of Validated, fully qualified and in lower case.
func ValidatedKeyName(ctx context.Context) (string, bool) {
	s, ok := Validated(ctx)
	return s.Key, ok
}

// innerOfSigned reports whether the query of ctx is a plugin's own, which a query with a good signature has led to: an
// alias that is followed, say. Nobody signs such a one, and it is asked for who has signed.
func innerOfSigned(ctx context.Context) bool {
	_, signed := Validated(ctx)
	return signed && plugin.Inner(ctx)
}

// withKeyName is ctx for a query with the good signature sig.
func withKeyName(ctx context.Context, sig *dns.TSIG) context.Context {
	return context.WithValue(ctx, identity{}, Signature{dns.CanonicalName(sig.Hdr.Name), sig.TimeSigned, sig.MAC})
}
