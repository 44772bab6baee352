package sign

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// A machine whose clock was wrong when the zone was signed, or found to be signed, signs it anew when the clock is right.
func TestClockIsSet(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, step := range []time.Duration{56 * year, year, -year, -56 * year} {
		for _, found := range []bool{false, true} {
			s := signer(t)
			if err := os.Chtimes(s.dbfile, time.Unix(3600, 0), time.Unix(3600, 0)); err != nil {
				t.Fatal(err)
			}
			right := time.Now()
			wrong := right.Add(-step)
			if strconv.IntSize == 32 && wrong.Unix() > math.MaxInt32 { // which no file has there
				continue
			}
			s.refresh(t.Context(), wrong)
			before := signedNow(t, s)
			if found {
				s = newSigner(s.origin, s.dbfile, s.directory, s.keys)
				s.refresh(t.Context(), wrong)
			}
			s.follow(t.Context(), wrong.Add(time.Minute))
			if signedNow(t, s) != before {
				t.Errorf("%v, found: %v: signed again though nothing is different", step, found)
			}
			s.follow(t.Context(), right)
			if why := s.due(right); why != "" || signedNow(t, s) == before {
				t.Errorf("%v, found: %v: not signed anew: %s", step, found, why)
			}
		}
	}
}

// What cannot be signed then is not tried each minute.
func TestClockIsSetInVain(t *testing.T) {
	b := logtest.Capture(t)
	s := signer(t)
	now := time.Now()
	s.refresh(t.Context(), now.Add(-1000*time.Hour))
	if err := os.RemoveAll(s.directory); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.follow(t.Context(), now)
	}
	if n := strings.Count(b.String(), "Error signing"); n != 1 {
		t.Errorf("it was tried %d times:\n%s", n, b)
	}
}

// What could not be written is signed again after a minute, then later each time, until it can be.
func TestWrittenLater(t *testing.T) {
	b := logtest.Capture(t)
	s := signer(t)
	now, home := time.Now(), s.directory
	s.directory = filepath.Join(home, "away")
	s.refresh(t.Context(), now)
	for _, minute := range []int{0, 1, 2, 3, 4, 5, 6} { // tried at first, after one, and after three
		s.follow(t.Context(), now.Add(time.Duration(minute)*time.Minute))
	}
	if n := strings.Count(b.String(), "Error signing"); n != 3 {
		t.Errorf("it was tried %d times:\n%s", n, b)
	}
	if err := os.Mkdir(s.directory, 0o700); err != nil {
		t.Fatal(err)
	}
	s.follow(t.Context(), now.Add(7*time.Minute))
	before := signedNow(t, s)
	s.follow(t.Context(), now.Add(time.Hour))
	if why := s.due(now.Add(time.Hour)); why != "" || signedNow(t, s) != before {
		t.Errorf("signed once more: %s", why)
	}
}
