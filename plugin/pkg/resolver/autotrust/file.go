package autotrust

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

// The file is text, one key a line, so that an operator can read it:
//
//	validator-anchors 1
//	zone . 1795824000 1796688000                    name, seen last, to be looked at next
//	key . valid 1795824000 257 3 8 AwEAAa...        zone, state, since when, the DNSKEY record
const header = "validator-anchors 1"

// Append appends the text of zones to b.
func Append(b []byte, zones []*Zone) []byte {
	b = append(b, header...)
	b = append(b, '\n')
	for _, z := range zones {
		b = fmt.Appendf(b, "zone %s %d %d\n", rrset.Text(z.Name), unix(z.Last), unix(z.Next))
		for _, k := range z.Keys {
			flags := int(k.RDATA[0])<<8 | int(k.RDATA[1])
			b = fmt.Appendf(b, "key %s %s %d %d %d %d %s\n", rrset.Text(z.Name), k.State, unix(k.Since), flags, k.RDATA[2], k.RDATA[3],
				base64.StdEncoding.EncodeToString([]byte(k.RDATA[4:])))
		}
	}
	return b
}

// unix is a time as the file has it: 0 for one that is not set.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// at is the reverse of unix.
func at(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n == 0 {
		return time.Time{}, err
	}
	return time.Unix(n, 0), nil
}

// A file of another version, or one that is damaged, is not read in part: which keys are believed should not depend on
// how much of it is left. Who starts the server is told instead.

// Parse reads what Append wrote. Errors name the line.
func Parse(text string) (zones []*Zone, err error) {
	byName := map[string]*Zone{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			return nil, fmt.Errorf("line %d: it is cut short", n)
		}
		line = strings.TrimSuffix(line, "\r")
		if n == 1 {
			if line != header {
				return nil, fmt.Errorf("line 1: %q is not %q", line, header)
			}
			continue
		}
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch {
		case f[0] == "zone" && len(f) == 4:
			z := &Zone{}
			if z.Name, err = rrset.Name(f[1]); err == nil {
				if z.Last, err = at(f[2]); err == nil {
					z.Next, err = at(f[3])
				}
			}
			if err == nil {
				zones, byName[z.Name] = append(zones, z), z
			}
		case f[0] == "key" && len(f) == 8:
			err = parseKey(byName, f)
		default:
			err = fmt.Errorf("%q is neither a zone nor a key", line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("line 1: %q is missing", header)
	}
	return zones, nil
}

// parseKey reads the fields of a key's line into its zone. Numbers out of their range, unknown states and keys that
// stand there twice are errors.
func parseKey(byName map[string]*Zone, f []string) error {
	name, err := rrset.Name(f[1])
	if err != nil {
		return err
	}
	z := byName[name]
	if z == nil {
		return fmt.Errorf("no zone %s stands before its key", f[1])
	}
	k := Key{}
	for s, text := range stateNames {
		if text == f[2] {
			k.State = s
		}
	}
	if k.State == 0 {
		return fmt.Errorf("unknown state %q", f[2])
	}
	if k.Since, err = at(f[3]); err != nil {
		return err
	}
	var nums [3]uint64
	for i, bits := range []int{16, 8, 8} {
		if nums[i], err = strconv.ParseUint(f[4+i], 10, bits); err != nil {
			return err
		}
	}
	public, err := base64.StdEncoding.DecodeString(f[7])
	if err != nil {
		return err
	}
	if k.RDATA = string([]byte{byte(nums[0] >> 8), byte(nums[0]), byte(nums[1]), byte(nums[2])}) + string(public); z.find(k.RDATA) != nil {
		return fmt.Errorf("the key stands there twice")
	}
	z.Keys = append(z.Keys, k)
	return nil
}

// unfinished is the names of files that are being written, which nobody else's files have.
const unfinished = ".anchors-*.new"

// WriteFile replaces a file. A reader, also after the machine went down at any moment, has it as it was before or
// after. What a process was writing there when it was killed is removed.
func WriteFile(path string, b []byte) error {
	zonefile.Tidy(filepath.Dir(path), unfinished, time.Now())
	return zonefile.Replace(path, unfinished, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	}, nil)
}
