package udp

import (
	"net/netip"
	"time"
	"unsafe"

	"github.com/coredns/coredns/plugin/pkg/afxdp"
	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/mmsg"

	"golang.org/x/sys/unix"
)

// directSocket reads what comes on a queue of a network interface for an address, past the kernel's network stack,
// and replies the same way. The kernel's socket of that address sends what cannot go so: long replies, and those that
// no loop makes.
type directSocket struct {
	socket *afxdp.Socket
	target *afxdp.Target   // that socket is of; sockets of other queues share it
	kernel *batchedSocket  // the first one of the address
	loop   *eventloop.Loop // that reads socket; nil until upstreams are watched
	batch  []afxdp.Datagram
	spare  []byte // for a reply that there is no frame for
	intake
}

// openDirect opens sockets for what comes to the transport's address on network interfaces. An interface that another
// process has as yet is tried again later; others that cannot be had are left to the kernel: a start without them is
// refused before that.
func (t *Transport) openDirect() {
	if len(t.sockets) == 0 {
		return
	}
	kernel := t.sockets[0].(*batchedSocket)
	for _, name := range t.Direct {
		sockets, err := directSockets(name, kernel)
		switch {
		case err == nil:
			t.direct = append(t.direct, sockets...)
		case afxdp.Taken(err):
			t.later = append(t.later, name)
		default:
			log.Warningf("Queries for %s that come on %s go through the kernel: %v", kernel.own, name, err)
		}
	}
}

// directSockets opens an interface for an address, with a socket for each of its queues.
func directSockets(name string, kernel *batchedSocket) ([]batchSocket, error) {
	target, err := afxdp.Listen(name, kernel.own, kernel.is4)
	if err != nil {
		return nil, err
	}
	var all []batchSocket
	for _, socket := range target.Sockets {
		s := &directSocket{socket: socket, target: target, kernel: kernel, spare: make([]byte, 0, replySpace)}
		s.intake.init(socket.Conn(), socket.SetReadDeadline, func(uintptr) (int, error) {
			s.batch = socket.Receive()
			return len(s.batch), nil
		})
		s.yields = true
		all = append(all, s)
	}
	return all, nil
}

// laterPause is how long lies between tries to open an interface that another process has: one in whose place this
// one comes, which ends soon.
const laterPause = 100 * time.Millisecond

// openLater opens interfaces that another process had, until the transport stops.
func (t *Transport) openLater() {
	for _, name := range t.later {
		go func() {
			for {
				select {
				case <-t.done:
					return
				case <-time.After(laterPause):
				}
				sockets, err := directSockets(name, t.sockets[0].(*batchedSocket))
				switch {
				case err == nil:
					if !t.readToo(sockets) {
						sockets[0].close()
					}
					return
				case !afxdp.Taken(err):
					log.Warningf("Queries that come on %s go through the kernel: %v", name, err)
					return
				}
			}
		}()
	}
}

func (s *directSocket) packet(i int) []byte { return s.batch[i].Payload }

func (s *directSocket) peer(i int) (client, local netip.AddrPort) {
	if d := &s.batch[i]; s.kernel.wild {
		return d.Client, d.Local
	}
	return s.batch[i].Client, s.kernel.own
}

// space implements batchSocket. Replies are made in the frames that they go out in.
func (s *directSocket) space() []byte {
	if space := s.socket.Space(); space != nil {
		return space
	}
	return s.spare
}

// answer implements batchSocket. What is too long for a frame, or finds none, goes through the kernel.
func (s *directSocket) answer(i int, b []byte) {
	if !s.socket.Answer(&s.batch[i], b) {
		var room pathScratch
		s.path(i, &room).write(b)
	}
}

func (s *directSocket) send() { s.socket.Send() }

// Send implements eventloop.Sender.
func (s *directSocket) Send() { s.socket.Send() }

// path implements batchSocket. The way back leads through the kernel, from the address that was asked, unless the
// loop itself has the reply; see queue.
func (s *directSocket) path(i int, room *pathScratch) returnPath {
	d := &s.batch[i]
	client, local := s.peer(i)
	*room = datagramPath{socket: s.kernel, to: client, from: local, direct: s, macs: d.MACs}
	if client.Addr().Zone() != "" {
		room.link = s.socket.Link()
	}
	if s.kernel.wild {
		room.control = room.space[:putPktinfo(&room.space, d.Local.Addr(), s.kernel.is4)]
	}
	return room
}

// queue sends b by the way that its query came, if loop is ours, and reports whether it does so.
func (s *directSocket) queue(p *datagramPath, b []byte, loop *eventloop.Loop) bool {
	if loop != s.loop || !s.socket.Answer(&afxdp.Datagram{Client: p.to, Local: p.from, MACs: p.macs}, b) {
		return false
	}
	loop.SendLater(s)
	return true
}

// watchUpstreams implements batchSocket.
func (s *directSocket) watchUpstreams(loop *eventloop.Loop) {
	s.loop = loop
	s.intake.watchUpstreams(loop)
}

// Nothing groups these sockets: each has what comes on its queue. Messages of the message lane are gathered in the
// kernel's queue. To leave one socket of a target is to leave all.

func (s *directSocket) served(int, int, time.Time) {}
func (s *directSocket) hold()                      { s.kernel.hold() }
func (s *directSocket) sendHeld()                  { s.kernel.sendHeld() }
func (s *directSocket) leave()                     { s.target.Leave() }
func (s *directSocket) readNoMore()                {}
func (s *directSocket) close() error               { return s.target.Close() }

// putPktinfo writes a control message that makes a datagram leave from an address, on a socket of the IPv4 family or
// of IPv6, and returns its length.
func putPktinfo(space *[mmsg.ControlSpace]byte, from netip.Addr, is4 bool) int {
	h := (*unix.Cmsghdr)(unsafe.Pointer(space))
	data := unsafe.Pointer(&space[unix.SizeofCmsghdr])
	if is4 {
		h.Level, h.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		*(*unix.Inet4Pktinfo)(data) = unix.Inet4Pktinfo{Spec_dst: from.As4()}
		return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
	}
	h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
	h.SetLen(unix.CmsgLen(unix.SizeofInet6Pktinfo))
	*(*unix.Inet6Pktinfo)(data) = unix.Inet6Pktinfo{Addr: from.As16()} // the kernel knows the link by where it goes
	return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
}
