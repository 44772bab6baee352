package cache

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/corefile"
)

// preset is the word for what RFC 8767 §5 recommends: old entries are of use for a day or more, resolution has 1.8 seconds, 30 seconds are the
// TTL of stale records and the pause after a failure.
const (
	preset        = "rfc8767"
	presetStale   = 24 * time.Hour
	presetTimeout = 1800 * time.Millisecond
	presetTTL     = 30
	presetRecheck = 30 * time.Second
)

func setStale(c *config, l *corefile.Line) error {
	c.stale, c.staleSeen = defaultStale, true
	args := l.Args
	if len(args) > 0 && args[len(args)-1] == preset {
		c.stale, c.verify, c.verifyTimeout = presetStale, true, presetTimeout
		c.staleTTL, c.failureRecheck, c.staleEDE = presetTTL, presetRecheck, true
		if len(args) > 2 {
			return l.CountErr()
		}
		args = args[:len(args)-1]
	}
	if len(args) > 0 {
		d, err := time.ParseDuration(args[0])
		switch {
		case err != nil:
			return err
		case d < 0:
			return errors.New("invalid negative duration for serve_stale")
		}
		c.stale = d
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	switch mode := strings.ToLower(args[0]); mode {
	case "immediate":
		c.verify = false
		if len(args) > 3 {
			return l.CountErr()
		}
		args = args[1:]
	case "verify":
		c.verify = true
		args = args[1:]
		if len(args) > 0 {
			d, err := time.ParseDuration(args[0])
			switch {
			case err != nil:
				return fmt.Errorf("invalid serve_stale verify timeout: %w", err)
			case d < 0:
				return errors.New("invalid negative timeout for serve_stale verify")
			}
			c.verifyTimeout = d
			args = args[1:]
		}
	default:
		return fmt.Errorf("invalid value for serve_stale refresh mode: %s: must be immediate or verify", mode)
	}
	return setStaleTimes(c, args)
}

// setStaleTimes reads [RESPONSE_TTL [FAILURE_RECHECK]].
func setStaleTimes(c *config, args []string) error {
	if len(args) > 0 {
		d, err := time.ParseDuration(args[0])
		switch {
		case err != nil:
			return fmt.Errorf("invalid serve_stale response TTL: %w", err)
		case d < 0:
			return errors.New("invalid negative response TTL for serve_stale")
		case d%time.Second != 0:
			return errors.New("serve_stale response TTL must be a whole number of seconds")
		case d/time.Second > maxWireTTL:
			return errors.New("serve_stale response TTL exceeds the DNS TTL range")
		}
		c.staleTTL = uint32(d / time.Second)
	}
	if len(args) > 1 {
		d, err := time.ParseDuration(args[1])
		switch {
		case err != nil:
			return fmt.Errorf("invalid serve_stale failure recheck: %w", err)
		case d < 0:
			return errors.New("invalid negative failure recheck for serve_stale")
		case d > maxRecheck:
			return errors.New("serve_stale failure recheck cannot exceed 5 minutes")
		}
		c.failureRecheck = d
	}
	return nil
}

func setStalePolicy(c *config, l *corefile.Line) error {
	if c.preferPositive {
		return errors.New("serve_stale_policy can only be specified once")
	}
	if strings.ToLower(l.Args[0]) != "prefer_positive" {
		return fmt.Errorf("invalid serve_stale_policy: %s: must be prefer_positive", l.Args[0])
	}
	c.preferPositive = true
	return nil
}
