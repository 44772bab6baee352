package proxy

import "crypto/tls"

// ownSessions hands out each session as a copy of its own: QUIC writes into what it resumes, and connections that are
// opened at the same time may resume the same.
type ownSessions struct{ tls.ClientSessionCache }

// Get implements tls.ClientSessionCache.
func (s ownSessions) Get(key string) (*tls.ClientSessionState, bool) {
	session, _ := s.ClientSessionCache.Get(key)
	if session == nil {
		return nil, false
	}
	ticket, state, err := session.ResumptionState()
	if err != nil || state == nil {
		return nil, false
	}
	own := *state
	session, err = tls.NewResumptionState(ticket, &own)
	return session, err == nil
}

// resuming is a copy of cfg that remembers sessions, in the pool's cache if cfg has none.
func (q *quicPool) resuming(cfg *tls.Config) *tls.Config {
	cfg = cfg.Clone()
	if cfg.ClientSessionCache == nil {
		cfg.ClientSessionCache = q.sessions
	}
	cfg.ClientSessionCache = ownSessions{cfg.ClientSessionCache}
	return cfg
}
