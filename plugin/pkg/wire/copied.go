package wire

import "slices"

// Copied is a reply as it was, whole: with its options, and what is to be logged of it. A Packed is less, and fits
// later queries. A Copied does not change.
type Copied struct{ content }

// Copied is a copy of what w holds. The memory that w works with is not in it.
func (w *Reply) Copied() Copied {
	c := Copied{w.content}
	octets := make([]byte, 0, len(w.buf)+len(w.options))
	octets = append(append(octets, w.buf...), w.options...)
	c.buf, c.options = octets[:len(w.buf):len(w.buf)], octets[len(w.buf):]
	c.recs = slices.Clone(w.recs)
	return c
}

// Paste makes w hold what was copied. Options of w stay.
func (w *Reply) Paste(c *Copied) { w.paste(&c.content) }

// Copy makes w hold what from holds. Options of w stay.
func (w *Reply) Copy(from *Reply) { w.paste(&from.content) }

func (w *Reply) paste(c *content) {
	buf, recs, options := w.buf, w.recs, w.options
	w.content = *c
	w.buf, w.recs, w.options = append(buf[:0], c.buf...), append(recs[:0], c.recs...), append(options, c.options...)
	w.names.reset()
}

// Count is the number of records of a section.
func (c *Copied) Count(s Section) int { return int(c.count[s]) }

// NonAuthoritative is what SetNonAuthoritative said of it.
func (c *Copied) NonAuthoritative() bool { return c.nonAuthoritative }
