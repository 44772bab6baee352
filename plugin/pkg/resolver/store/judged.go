package store

// SecureDenial notes that the NXDOMAIN of a name that is kept was validated: names below it do not exist either (RFC
// 8020).
func (s *RRsets) SecureDenial(name string, now Time) {
	s.shelf.update(keyOf(name, 0), func(old *Entry, ok bool) (*Entry, bool) {
		if !ok || old.Expires <= now || old.Status == Secure {
			return old, false
		}
		e := *old
		e.Status = Secure
		return &e, true
	})
}
