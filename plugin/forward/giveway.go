package forward

import (
	"errors"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/proxy"
)

// checkAgain is how long after an upstream was checked, for a query that gave way, one is checked for another one.
const checkAgain = 10 * time.Millisecond

var epoch = time.Now()

// gaveWay reports whether err says that a query has given way which has a place, and may do so.
func gaveWay(has eventloop.Place, err error) bool {
	return has != 0 && errors.Is(err, proxy.ErrGaveWay)
}

// doubtInCrowd is doubt of the upstream of a query that gave way. There may be very many, of an upstream that is well,
// so it is checked once in a while only. It reports whether that is now, a time since epoch.
func (f *Forward) doubtInCrowd(up *proxy.Proxy, now int64) (checks bool) {
	last := f.doubted.Load()
	checks = now-last >= int64(checkAgain) && f.doubted.CompareAndSwap(last, now)
	if checks {
		f.doubt(up)
	} else if l := up.Latency(); l != nil {
		l.Missed()
	}
	return checks
}
