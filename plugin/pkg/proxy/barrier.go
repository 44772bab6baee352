package proxy

import "sync"

// barrier lets one wait until all have left who had entered before. Who has entered may enter again below that, though
// somebody waits meanwhile: the owner of an exchange that ends begins another one, say, which fails at once. The zero
// barrier is ready.
type barrier struct {
	waiting sync.Mutex // one waits at a time: what the one before it waited for is over, too

	mu     sync.Mutex
	inside *sync.WaitGroup // since the last wait; nil if nobody has entered
}

// enter is for who touches exchanges from now on, until he calls Done of what it returns.
func (b *barrier) enter() *sync.WaitGroup {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside == nil {
		b.inside = new(sync.WaitGroup)
	}
	b.inside.Add(1)
	return b.inside
}

// wait waits for all who have entered so far.
func (b *barrier) wait() {
	b.waiting.Lock()
	defer b.waiting.Unlock()
	b.mu.Lock()
	before := b.inside
	b.inside = nil
	b.mu.Unlock()
	if before != nil {
		before.Wait()
	}
}
