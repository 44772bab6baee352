package fetch

import (
	"crypto/hmac"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/coredns/coredns/plugin/pkg/keyring"

	"github.com/miekg/dns"
)

// Messages of a transfer that are not signed (RFC 8945 §5.3.1): between two that are there may be 99 at most, and the
// MAC of the next one that is signed is made over them, too. Their records are put into the version in the making,
// which is thrown away unless a good signature comes behind them.

// maxGap is how many messages in a row may be unsigned; maxGapOctets how long they may be together, as they are held
// until their signature comes.
const (
	maxGap       = 99
	maxGapOctets = 8 << 20
)

var errGap = errors.New("too many messages in a row are not signed")

// unsigned takes a message without a signature. The first one must have one.
func (c *conn) unsigned() error {
	switch {
	case c.first:
		return errUnsigned
	case c.gap == maxGap, len(c.bare)+len(c.buf) > maxGapOctets:
		return errGap
	}
	// Held as it came: the MAC is over the octets, and its key is not known before the record that has it.
	c.gap++
	c.bare = append(c.bare, c.buf...)
	return nil
}

// settled is an error if the last messages were not signed: of a transfer the last one has to be.
func (c *conn) settled() error {
	if c.gap > 0 {
		return errUnsigned
	}
	return nil
}

// verifyGap checks a signature that is over messages before it, too: the MAC before, these messages, this one without
// its signature, and the time (RFC 8945 §5.3.1, §4.3.3).
func (c *conn) verifyGap(sig *dns.TSIG) error {
	h, err := keyring.HMAC(c.key.Secret, sig.Algorithm)
	if err != nil {
		return err
	}
	before, err := hex.DecodeString(c.mac)
	if err != nil {
		return err
	}
	// The message as it was before it was signed: with its own id, and without the record.
	m := append([]byte(nil), c.buf[:c.reader.signed]...)
	binary.BigEndian.PutUint16(m, sig.OrigId)
	binary.BigEndian.PutUint16(m[10:], binary.BigEndian.Uint16(m[10:])-1)
	h.Write(binary.BigEndian.AppendUint16(nil, uint16(len(before))))
	h.Write(before)
	h.Write(c.bare)
	h.Write(m)
	// Of the variables only the time counts behind the first message.
	timers := binary.BigEndian.AppendUint64(nil, sig.TimeSigned)[2:]
	h.Write(binary.BigEndian.AppendUint16(timers, sig.Fudge))
	mac, err := hex.DecodeString(sig.MAC)
	if err != nil || !hmac.Equal(mac, h.Sum(nil)) {
		return fmt.Errorf("the signature of a message: %w", dns.ErrSig)
	}
	// The clocks of both sides may differ by the fudge (RFC 8945 §5.2.3).
	now := uint64(time.Now().Unix())
	if max(now, sig.TimeSigned)-min(now, sig.TimeSigned) > uint64(sig.Fudge) {
		return fmt.Errorf("the signature of a message: %w", dns.ErrTime)
	}
	c.mac, c.bare, c.gap = sig.MAC, c.bare[:0], 0
	return nil
}
