package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// exporter sends spans to a collector.
type exporter interface {
	// export sends all, and waits for the collector's answer.
	export(ctx context.Context, all []*span) error
	close() error
}

// sender gathers spans and hands them to an exporter, on a goroutine of its own. What is too much is dropped and counted.
type sender struct {
	to       exporter
	batch    int
	interval time.Duration

	queue   chan *span
	dropped atomic.Uint64
	quit    chan struct{}
	ending  sync.Once // closes quit
	done    sync.WaitGroup
	trouble trouble // of run alone

	sending context.Context // ends what is being sent
	cancel  context.CancelFunc
}

// Defaults of the options that begin with zipkin_max, for all collectors.
const (
	defaultBacklog  = 1000
	maxBacklog      = 1 << 20 // room for it is taken at the start
	defaultBatch    = 100
	defaultInterval = time.Second
	sendTime        = 5 * time.Second
	lastTime        = time.Second // for all that is left when the plugin ends
)

func newSender(to exporter, backlog, batch int, interval time.Duration) *sender {
	s := &sender{to: to, batch: batch, interval: interval, queue: make(chan *span, min(backlog, maxBacklog)), quit: make(chan struct{})}
	s.sending, s.cancel = context.WithCancel(context.Background())
	return s
}

func (s *sender) start() { s.done.Go(s.run) }

// end begins to send what is there. A collector that does not answer is not waited for long.
func (s *sender) end() {
	s.ending.Do(func() {
		close(s.quit)
		time.AfterFunc(lastTime, s.cancel)
	})
}

// stop is end, and waits.
func (s *sender) stop() error {
	s.end()
	s.done.Wait()
	s.cancel()
	return nil
}

// take takes a span, or drops it.
func (s *sender) take(sp *span) {
	select {
	case s.queue <- sp:
	default:
		s.dropped.Add(1)
	}
}

func (s *sender) run() {
	tick := time.NewTicker(s.interval)
	defer tick.Stop()
	var all []*span
	for {
		select {
		case sp := <-s.queue:
			if all = append(all, sp); len(all) >= s.batch {
				all = s.send(all)
			}
		case <-tick.C:
			all = s.send(all)
			warn(s.trouble.due(time.Now()))
			s.tellDropped()
		case <-s.quit:
			for len(s.queue) > 0 {
				all = append(all, <-s.queue)
			}
			s.send(all)
			warn(s.trouble.line(time.Now()))
			s.tellDropped()
			return
		}
	}
}

func (s *sender) tellDropped() {
	if n := s.dropped.Swap(0); n > 0 {
		logger.Warningf("dropped %d spans: the collector is too slow", n)
	}
}

// send sends all, and returns the memory for the next ones.
func (s *sender) send(all []*span) []*span {
	if len(all) == 0 {
		return all
	}
	ctx, cancel := context.WithTimeout(s.sending, sendTime)
	defer cancel()
	if err := s.to.export(ctx, all); err != nil {
		warn(s.trouble.failed(err, time.Now()))
	}
	clear(all)
	return all[:0]
}

// warn tells what is wrong, unless that is nothing.
func warn(line string) {
	if line != "" {
		logger.Warningf("failed to send the request: %s", line)
	}
}

// post sends a body over HTTP.
func post(ctx context.Context, client *http.Client, method, url, contentType string, body []byte, headers map[string]string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 256))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s: %s", url, resp.Status, strings.Join(strings.Fields(string(text)), " ")) // it may be a page
	}
	return nil
}
