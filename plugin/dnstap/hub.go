package dnstap

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
	framestream "github.com/farsightsec/golang-framestream"
)

// hub is the sink of all peers that connect to a listener. It outlives a reload, with its peers, if the configuration that
// comes has it, too.
type hub struct {
	key      string
	owner    any // the instance that asked for it last; guarded by hubs
	network  string
	addr     string
	listener net.Listener               // guarded by mu
	tls      atomic.Pointer[tls.Config] // for the next peer; nil for plain connections
	logger   WarnLogger
	strange  log.Few // lines about peers that are no collectors
	peers    atomic.Pointer[[]*peer]

	mu      sync.Mutex // writers of peers
	stopped bool
	running sync.WaitGroup
	over    context.Context // of connections; ends lastTime after stop was called
	cancel  context.CancelFunc
}

// peer is one that is connected.
type peer struct {
	*queue
	conn net.Conn
	quit chan struct{}
}

// hubs has the hubs of the process by what they listen on.
var hubs = struct {
	sync.Mutex
	all map[string]*hub
	use map[*hub]int
}{all: map[string]*hub{}, use: map[*hub]int{}}

var errUnlike = errors.New("another dnstap directive listens there with other options")

// openHub is the hub that listens on addr, which is begun if there is none. owner is the instance that wants it: two that are
// not alike cannot have one address in it, as collectors would come to either.
func openHub(owner any, network, addr string, cfg *tls.Config, identity string, l WarnLogger) (*hub, error) {
	hubs.Lock()
	defer hubs.Unlock()
	key := network + " " + addr + " " + identity
	for _, other := range hubs.all {
		if other.network == network && other.addr == addr && other.key != key && owner != nil && other.owner == owner {
			return nil, errUnlike
		}
	}
	if h := hubs.all[key]; h != nil {
		h.owner = owner
		h.tls.Store(cfg) // its files may have been renewed
		hubs.use[h]++
		h.renew()
		return h, nil
	}
	listener, err := listen(network, addr, caddy.IsUpgrade() || listens(network, addr))
	if err != nil {
		return nil, err
	}
	h := &hub{key: key, owner: owner, network: network, addr: addr, listener: listener, logger: l}
	if cfg != nil {
		h.listener = tls.NewListener(listener, &tls.Config{GetConfigForClient: h.config})
	}
	h.over, h.cancel = context.WithCancel(context.Background())
	h.tls.Store(cfg)
	h.peers.Store(new([]*peer))
	hubs.all[key], hubs.use[h] = h, 1
	listener = h.listener
	h.running.Go(func() { h.accept(listener) })
	return h, nil
}

// renew listens again if the file of the socket was taken away: nobody could connect any more.
func (h *hub) renew() {
	if h.network != "unix" {
		return
	}
	if _, err := os.Lstat(h.addr); !os.IsNotExist(err) {
		return
	}
	l, err := listen(h.network, h.addr, false)
	if err != nil {
		h.logger.Warningf("Listening again on %s: %v", h.addr, err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listener.Close()
	h.listener = l
	h.running.Go(func() { h.accept(l) })
}

// config is what a peer is told in the handshake.
func (h *hub) config(*tls.ClientHelloInfo) (*tls.Config, error) { return h.tls.Load(), nil }

// listens reports whether there is a hub that listens on addr, as one that a reload is about to end. hubs is locked.
func listens(network, addr string) bool {
	for _, h := range hubs.all {
		if h.network == network && h.addr == addr {
			return true
		}
	}
	return false
}

// release ends the hub with its last user.
func (h *hub) release() {
	hubs.Lock()
	hubs.use[h]--
	last := hubs.use[h] == 0
	if last {
		delete(hubs.use, h)
		delete(hubs.all, h.key)
	}
	hubs.Unlock()
	if last {
		h.stop()
	}
}

// take hands frames to all peers.
func (h *hub) take(frames []byte, n int) {
	for _, p := range *h.peers.Load() {
		p.take(frames, n)
	}
}

func (h *hub) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause)
			continue
		}
		h.mu.Lock()
		if h.stopped {
			conn.Close()
		} else {
			h.running.Go(func() { h.serve(conn) })
		}
		h.mu.Unlock()
	}
}

const acceptPause = 10 * time.Millisecond

// serve is one peer's goroutine.
func (h *hub) serve(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(h.over, func() { conn.Close() })()
	w, err := handshake(conn)
	if err != nil {
		if h.strange.May() {
			h.logger.Warningf("Peer %s: %v", conn.RemoteAddr(), err)
		}
		return
	}
	p := &peer{queue: newQueue(1), conn: conn, quit: make(chan struct{})}
	defer p.close()
	if !h.add(p) {
		return
	}
	defer h.remove(p)
	p.serve(w, h.logger)
}

// serve writes what comes until the peer is gone, or the hub ends.
func (p *peer) serve(w *framestream.Writer, l WarnLogger) {
	report := time.NewTicker(reportEvery)
	defer report.Stop()
	between := p.reporting(l, report.C)
	for {
		select {
		case <-p.begun:
			p.gather(p.quit)
			if err := p.write(p.conn, between); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) { // he hangs; who has gone wants no more
					p.abandon(l)
				}
				return
			}
		case <-report.C:
			if p.report(l); gone(p.conn) {
				return
			}
		case <-p.quit:
			if p.write(p.conn, between) == nil {
				w.Close()
			}
			p.abandon(l)
			return
		}
	}
}

func (h *hub) add(p *peer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	all := append(append([]*peer(nil), *h.peers.Load()...), p)
	h.peers.Store(&all)
	return true
}

func (h *hub) remove(p *peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []*peer
	for _, other := range *h.peers.Load() {
		if other != p {
			all = append(all, other)
		}
	}
	h.peers.Store(&all)
}

// stop ends the hub. What waits is sent, as far as peers take it in lastTime.
func (h *hub) stop() {
	h.mu.Lock()
	h.stopped = true
	h.listener.Close()
	for _, p := range *h.peers.Load() {
		close(p.quit)
	}
	h.mu.Unlock()
	defer h.cancel()
	defer time.AfterFunc(lastTime, h.cancel).Stop()
	h.running.Wait()
}
