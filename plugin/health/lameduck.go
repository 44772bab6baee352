package health

import (
	"sync"
	"time"

	"github.com/coredns/caddy"
)

// lameduck is the time before the end of an instance in which it still answers: clients and load balancers notice that it
// ends before it does. All endpoints of the instance begin it at once, so that it takes as long as the longest of them.
type lameduck struct {
	once  sync.Once
	begin time.Time
}

// duckKey is the instance's key for its lameduck.
type duckKey struct{}

func instanceDuck(c *caddy.Controller) *lameduck {
	if d, ok := c.Get(duckKey{}).(*lameduck); ok {
		return d
	}
	d := new(lameduck)
	c.Set(duckKey{}, d)
	return d
}

// wait returns when d has passed since the first call.
func (l *lameduck) wait(d time.Duration) {
	l.once.Do(func() { l.begin = time.Now() })
	if d <= 0 {
		return
	}
	logger.Infof("Going into lameduck mode for %s", d)
	time.Sleep(time.Until(l.begin.Add(d)))
}
