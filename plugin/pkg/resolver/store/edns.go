package store

// This file is what is known of servers and EDNS (RFC 6891): whether they are asked with an OPT record, and with
// options in it.

// EDNS reports whether the server is asked with an OPT record.
func (v *Server) EDNS(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.edns || v.plain <= now
}

// AgainEDNS is EDNS for a question whose answer lacked signatures: once in a while it is tried all the same, as whoever
// refused it before may have gone.
func (v *Server) AgainEDNS(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.edns || v.plain <= now {
		return true
	}
	if v.again != 0 && now >= v.again && now-v.again < tryAgain {
		return false
	}
	v.again = now
	return true
}

// RefusesEDNS notes that the server does not know EDNS. One that has given an OPT record once is never asked without:
// then it reports false.
func (v *Server) RefusesEDNS(until Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.edns {
		return false
	}
	v.plain = until
	return true
}

// Options reports whether the server is asked with options in an OPT record. One that is silent, and has never
// replied to a query with any, is not: there are firewalls that drop such queries, and servers that spoil a cookie.
func (v *Server) Options(now Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bare <= now && (v.options || v.losses == 0)
}

// TookOptions notes, before Replied, that the reply is to a query with an OPT record which had options, or had none. If
// one without brought the first reply after silence, it goes on like that.
func (v *Server) TookOptions(had bool, until Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case had:
		v.options = true
	case !v.options && v.losses > 0:
		v.bare = until
	}
}

// RefusesOptions notes that the server takes no options that it does not know.
func (v *Server) RefusesOptions(until Time) {
	v.mu.Lock()
	v.bare = until
	v.mu.Unlock()
}
