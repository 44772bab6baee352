package dnsserver

import "github.com/coredns/coredns/core/internal/service"

// takeOver gives s the transport of the server before it that fits. It reports false if there is none.
func takeOver[T service.Heirloom](s *Server, fits func(T) bool) (t T, ok bool) {
	s.mu.Lock()
	before := s.predecessor
	s.mu.Unlock()
	if before == nil {
		return t, false
	}
	before.mu.Lock()
	defer before.mu.Unlock()
	if before.stopped {
		return t, false
	}
	for i, r := range before.running {
		if t, ok = r.(T); ok && fits(t) {
			before.running = append(before.running[:i:i], before.running[i+1:]...)
			before.passed = append(before.passed, t)
			t.Sit(s.service())
			return t, true
		}
	}
	return t, false
}
