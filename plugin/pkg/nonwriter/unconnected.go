package nonwriter

// Unconnected is the part of a dns.ResponseWriter that concerns a connection and signatures, for one that has neither.
type Unconnected struct{}

// Close does nothing, as do the others.
func (Unconnected) Close() error        { return nil }
func (Unconnected) Hijack()             {}
func (Unconnected) TsigStatus() error   { return nil }
func (Unconnected) TsigTimersOnly(bool) {}
