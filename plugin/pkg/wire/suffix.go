package wire

// Suffixes finds, for a name, the values of the names that it is or lies below: of the
// longest first. A Suffixes that is not changed any more may be read by any number of goroutines.
type Suffixes[T any] struct {
	values map[string]T // by lower name in wire form
	depths [128]bool    // there is a name of so many labels
}

// Set enters the value of a lower name, in the place of one that is there.
func (s *Suffixes[T]) Set(name []byte, v T) {
	if s.values == nil {
		s.values = map[string]T{}
	}
	s.values[string(name)] = v
	s.depths[CountLabels(name)] = true
}

// Get is the value of exactly a lower name.
func (s *Suffixes[T]) Get(name []byte) (v T, ok bool) {
	v, ok = s.values[string(name)]
	return v, ok
}

// Len is the number of names.
func (s *Suffixes[T]) Len() int { return len(s.values) }

// Longest is the value of the longest name that the lower name is or lies below.
func (s *Suffixes[T]) Longest(name []byte) (v T, ok bool) {
	var c Climb[T]
	c.Start(s, name)
	v, _, ok = c.Next()
	return v, ok
}

// Climb is the way from a name up to the root.
type Climb[T any] struct {
	s    *Suffixes[T]
	name []byte
	offs [128]uint8
	n    int // labels of the name
	i    int // the next suffix to look at begins with label i
}

// Start begins at a lower name, which must stay as it is meanwhile.
func (c *Climb[T]) Start(s *Suffixes[T], name []byte) {
	c.s, c.name, c.i = s, name, 0
	c.n = LabelOffsets(name, &c.offs)
}

// Next is the value of the next shorter name that has one, and how many labels of the
// name stand before it: none if it is the name itself. It reports false at the end.
func (c *Climb[T]) Next() (v T, before int, ok bool) {
	for ; c.i <= c.n; c.i++ {
		if !c.s.depths[c.n-c.i] {
			continue
		}
		off := len(c.name) - 1
		if c.i < c.n {
			off = int(c.offs[c.i])
		}
		if v, ok = c.s.values[string(c.name[off:])]; ok {
			c.i++
			return v, c.i - 1, true
		}
	}
	return v, 0, false
}

// AtRoot reports whether what Next returned last was the root's.
func (c *Climb[T]) AtRoot() bool { return c.i == c.n+1 }
