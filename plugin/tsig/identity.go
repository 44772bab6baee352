package tsig

import (
	"context"

	"github.com/miekg/dns"
)

// keyName is the context key of the name of the key that a query was signed with.
type keyName struct{}

// ValidatedKeyName is the name of the key that the query of ctx was signed with, fully qualified and in lower case. It
// reports false unless the signature was found good, and the query is for a zone of the tsig plugin above: then nobody
// knows who asks.
func ValidatedKeyName(ctx context.Context) (string, bool) {
	name, ok := ctx.Value(keyName{}).(string)
	return name, ok
}

// withKeyName is ctx for a query with the good signature sig.
func withKeyName(ctx context.Context, sig *dns.TSIG) context.Context {
	return context.WithValue(ctx, keyName{}, dns.CanonicalName(sig.Hdr.Name))
}
