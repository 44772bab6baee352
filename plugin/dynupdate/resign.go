package dynupdate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/signing"
	"github.com/coredns/coredns/plugin/pkg/zone"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"
)

// This file keeps a zone signed when no client changes it: it is signed at start, or when its keys are others, and what
// is about to end is signed anew as a change of its own.

// renewEvery is how often a zone is searched for signatures that end soon.
const renewEvery = time.Hour

// renewMost is how many names one change signs anew, so that updates do not wait for long.
const renewMost = 256

// signWith has the zone signed with keys from now on, with none not any more, and serials made by a policy. What stands
// in the zone is made right before it returns, unless another process still has the database: then that is done later.
func (s *store) signWith(keys []zonekeys.Pair, nsec3 bool, serials serialPolicy) error {
	s.mu.Lock()
	renew := s.setSigner(keys, nsec3, serials)
	s.mu.Unlock()
	if !renew {
		return nil
	}
	return s.renew()
}

// setSigner is signWith for what is signed from now on. It reports whether what stands in the zone is to be made right
// now. s.mu is held.
func (s *store) setSigner(keys []zonekeys.Pair, nsec3 bool, serials serialPolicy) (renew bool) {
	g := signing.New(s.tip.Origin(), keys, nsec3)
	plain, _ := s.tip.Unproved()
	if s.signer == nil && len(keys) == 0 && plain == s.tip.Records() {
		return false
	}
	s.signer, s.serials = g, serials
	if s.unrenew != nil {
		close(s.unrenew)
	}
	s.unrenew = make(chan struct{})
	h := s.handing
	go s.renews(s.unrenew, h)
	return h == nil
}

// renews searches again and again, until stop is closed. It begins when another process has handed over, if it has to.
func (s *store) renews(stop chan struct{}, handing *group) {
	t := time.NewTicker(renewEvery)
	defer t.Stop()
	var handed chan struct{}
	if handing != nil {
		handed = handing.done
	}
	for {
		select {
		case <-stop:
			return
		case <-handed:
			handed = nil
		case <-t.C:
		}
		if err := s.renew(); err != nil && !errors.Is(err, errClosed) {
			logger.Errorf("Signing: %v", err)
		}
	}
}

// renew makes right what is not as the signer has it, or ends soon.
func (s *store) renew() error {
	s.mu.Lock()
	g, v, now := s.signer, s.tip, s.now()
	s.mu.Unlock()
	if g == nil {
		return nil
	}
	due, whole := g.Due(v, now)
	for batch := range slices.Chunk(due, renewMost) {
		if whole {
			batch = due // a zone that is signed in part would be bogus
		}
		var from, to uint32
		do := func(c *zone.Change) bool {
			for _, name := range batch {
				if whole {
					break // the signer looks at all of them
				}
				c.At(name)
			}
			return raise(c, c.Base().Origin(), s.serials, uint32(now.Unix())) == nil
		}
		err := s.update(do, func(_ *zone.Zone, d *zone.Delta) bool {
			from, to = d.From, d.To
			return true
		})
		if errors.Is(err, errFrozen) {
			return nil // it is done when the zone is thawed
		}
		if err != nil {
			return fmt.Errorf("zone %s: %w", s.zone, err)
		}
		logger.Infof("Zone %s: %d names signed, serial %d->%d", s.zone, len(batch), from, to)
		if whole {
			break
		}
	}
	if !g.HasKeys() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.signer == g {
			s.signer = nil // nothing of it is left
		}
	}
	return nil
}
