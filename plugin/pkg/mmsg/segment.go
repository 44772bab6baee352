package mmsg

import (
	"fmt"
	"strings"
	"sync/atomic"
)

// Segmentation is for which addresses datagrams may be given to the kernel together, to be cut apart by the device or at the
// receiving socket (UDP generic segmentation offload). One of several that are sent so costs half of one that is sent alone.
//
// Not every receiver on the same machine is up to it: what reads packets below the sockets, such as captures and the network
// stacks of sandboxes, may see them uncut. On loopback there are but the kernel's own sockets.
type Segmentation int32

// The kinds of Segmentation; the first is in force if nothing else is asked for.
const (
	SegmentLoopback Segmentation = iota
	SegmentAll
	SegmentOff
)

var segmentations = [...]string{SegmentLoopback: "loopback", SegmentAll: "all", SegmentOff: "off"}

// inForce is the Segmentation of this process.
var inForce atomic.Int32

// SetSegmentation puts s in force, for sockets that are opened after it.
func SetSegmentation(s Segmentation) { inForce.Store(int32(s)) }

func (s Segmentation) String() string { return segmentations[s] }

// Set implements flag.Value: s is loopback, all or off, and in force then.
func (s *Segmentation) Set(text string) error {
	for i, name := range segmentations {
		if text == name {
			*s = Segmentation(i)
			SetSegmentation(*s)
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(segmentations[:], ", "))
}
