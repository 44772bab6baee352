package lean

// Namespace is a v1 Namespace: DNS needs its metadata alone.
type Namespace struct{ Meta Meta }

// Metadata implements Object.
func (n *Namespace) Metadata() *Meta { return &n.Meta }

// Decode implements Object.
func (n *Namespace) Decode(b []byte, e Encoding) error {
	n.Meta.reset()
	if e == JSON {
		return n.json(b)
	}
	f := over(b)
	for f.next() {
		if f.num == 1 {
			f.within(n.Meta.proto)
		}
	}
	return f.err
}
