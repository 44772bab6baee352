// Package sign signs zone files ahead of time and keeps the signatures fresh (RFC 4034, 4035, 5155, 7344, 8976).
//
//	DBFILE ──read──▶ zone ──sign──▶ zone with DNSKEY, CDS, CDNSKEY, NSEC or NSEC3, RRSIG ──write──▶ DIR/db.ZONEsigned
//	                          ▲                                                               │
//	                        Pairs                            file plugin ◀──looks at it────────┘
//	                                                         due? ◀──looks at its signatures──┘
//
// The plugin is not in the chain: it writes files, and others serve them. Each zone has a Signer with one goroutine, from OnStartup
// to OnShutdown. What is signed when is decided in due.go, from facts of the two files.
//
// Start at Signer.Sign.
package sign

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/stamp"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
	"github.com/coredns/coredns/plugin/pkg/zonekeys"
)

const pluginName = "sign"

var log = clog.NewWithPlugin(pluginName)

// Sign is the signers of a server block.
type Sign struct {
	signers []*Signer
	listens <-chan struct{} // closed when the configuration serves; nil if it does so already

	cancel context.CancelFunc
	done   sync.WaitGroup
}

const (
	checkEvery = 5 * time.Hour   // whether signatures grow old
	watchEvery = 1 * time.Minute // whether the zone file was changed
)

// OnStartup starts the signers. They sign what is due, as soon as the configuration serves: one that comes to nothing
// leaves the files to the one before, which may have other keys.
func (s *Sign) OnStartup() error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, signer := range s.signers {
		s.done.Go(func() {
			if s.listens != nil {
				select {
				case <-s.listens:
				case <-ctx.Done():
					return
				}
			}
			signer.run(ctx)
		})
	}
	return nil
}

// OnShutdown ends the signers and waits for them. Signing that is under way is given up; the files stay as they are.
func (s *Sign) OnShutdown() error {
	if s.cancel != nil {
		s.cancel()
		s.done.Wait()
	}
	return nil
}

// run signs the zone whenever that is due, until ctx is cancelled.
func (s *Signer) run(ctx context.Context) {
	check, watch := time.NewTicker(checkEvery), time.NewTimer(watchEvery)
	defer check.Stop()
	defer watch.Stop()
	zonefile.Tidy(filepath.Clean(s.directory), unfinished, time.Now())
	s.refresh(ctx, time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-check.C:
			s.refresh(ctx, now)
		case now := <-watch.C:
			watch.Reset(cmp.Or(s.follow(ctx, now), watchEvery))
		}
	}
}

// follow signs the zone if its file, or one that it includes, is another than when it was read: also an older one, as files are
// that were written elsewhere and moved here. A zone file that is not there is waited for. One that was changed just now may
// still be written: again is when to come for it, 0 for the usual time. It signs, too, if the clock was set, and tries what could not be written.
func (s *Signer) follow(ctx context.Context, now time.Time) (again time.Duration) {
	if s.lapsed(now) {
		s.refresh(ctx, now)
		return 0
	}
	if !s.unwritten.next.IsZero() && !now.Before(s.unwritten.next) {
		s.renew(ctx, now, "it could not be written")
		return 0
	}
	for i, was := range s.known() {
		is := stamp.At(was.path)
		if i == 0 && is == (stamp.Stamp{}) {
			return 0
		}
		if is == was.stamp || stamp.IsPipe(was.path) { // a pipe in its place is as if it was gone
			continue
		}
		if again = s.settles.Wait(is.Changed(), now, watchEvery); again == 0 {
			s.renew(ctx, now, changed(was.path))
		}
		return again
	}
	return 0
}

func changed(path string) string { return fmt.Sprintf("%q has changed", path) }

// known is the zone file and what it includes.
func (s *Signer) known() sources {
	if s.from == nil {
		s.from = sourcesOf(s.dbfile, s.origin)
	}
	return s.from
}

// retry is when to sign anew what could not be written, as on a full disk: after a minute, and ever later.
type retry struct {
	next  time.Time // zero: there is nothing to try
	pause time.Duration
}

func (r *retry) failed(now time.Time) {
	r.pause = min(max(2*r.pause, watchEvery), checkEvery)
	r.next = now.Add(r.pause)
}

// refresh signs the zone if that is due, and says what came of it.
func (s *Signer) refresh(ctx context.Context, now time.Time) {
	if why := s.due(now); why != "" {
		s.renew(ctx, now, why)
		return
	}
	log.Infof("Skipping signing zone %q in %q: signatures are valid", s.origin, s.signedFile())
}

// renew signs the zone.
func (s *Signer) renew(ctx context.Context, now time.Time, why string) {
	next := now.Add(checkEvery).UTC().Format(time.RFC3339)
	log.Infof("Signing %q because %s", s.origin, why)
	s.counts = zonekeys.Span{} // if it fails, checkEvery is soon enough to try again
	signed, err := s.sign(ctx, now)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		log.Warningf("Error signing %q with key tags %q in %s: %s, next: %s", s.origin, s.tags(), time.Since(now), err, next)
		return
	}
	if err := s.write(signed, now); err != nil {
		s.unwritten.failed(now)
		log.Warningf("Error signing %q: failed to move zone file into place: %s", s.origin, err)
		return
	}
	s.unwritten = retry{}
	s.counts = s.span(now)
	log.Infof("Successfully signed zone %q in %q with key tags %q and %d SOA serial, elapsed %f, next: %s",
		s.origin, s.signedFile(), s.tags(), signed.Serial(), time.Since(now).Seconds(), next)
}
