package cache

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Who changes a file and reloads wants what it says now. So what files hold is a part of what a cache may be told.

// readers are the directives that answer from files, or are told by files whom to ask.
var readers = []string{"auto", "dnssec", "file", "forward", "grpc", "hosts", "recurse", "sign"}

const (
	systemHosts = "/etc/hosts" // what hosts reads if the Corefile names nothing
	keySuffix   = ".key"       // of files that are named without it
	maxHashed   = 1 << 20      // octets of a file that are looked at; a longer one is told by its length and time
)

// describeFiles writes what the files hold that a stanza, as dnsserver.Stanza has it, names. Relative names are below
// root.
func describeFiles(b *strings.Builder, root, stanza string) {
	before, seen := "", map[string]bool{}
	for name := range words(stanza) {
		path := name
		if name == "hosts" {
			path = systemHosts
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		if before == "directory" {
			describeFolder(b, path)
		} else {
			describeFile(b, path, seen)
			describeFile(b, path+keySuffix, seen)
		}
		before = name
	}
}

// words are those of a stanza, as dnsserver.Stanza has it.
func words(stanza string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := stanza; rest != ""; {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				rest = rest[1:] // what stands between
				continue
			}
			rest = rest[len(quoted):]
			if word, _ := strconv.Unquote(quoted); !yield(word) {
				return
			}
		}
	}
}

// describeFile writes what a file holds, and those that it includes, as a zone's may; nothing if there is none, or it was seen.
func describeFile(b *strings.Builder, path string, seen map[string]bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || seen[path] {
		return
	}
	seen[path] = true
	if info.Size() > maxHashed {
		describeTime(b, path, info)
		return
	}
	held, err := os.ReadFile(path)
	if err != nil {
		return
	}
	fmt.Fprintf(b, "%q %x\n", path, sha256.Sum256(held))
	for line := range bytes.Lines(held) {
		if line[0] != '$' {
			continue
		}
		if words := strings.Fields(string(line)); len(words) > 1 && strings.EqualFold(words[0], "$INCLUDE") {
			included := strings.Trim(words[1], `"`)
			if !filepath.IsAbs(included) {
				included = filepath.Join(filepath.Dir(path), included)
			}
			describeFile(b, included, seen)
		}
	}
}

// describeFolder writes which files are in a folder or below, and of when they are.
func describeFolder(b *strings.Builder, path string) {
	filepath.WalkDir(path, func(path string, _ fs.DirEntry, _ error) error {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			describeTime(b, path, info)
		}
		return nil
	})
}

func describeTime(b *strings.Builder, path string, info fs.FileInfo) {
	fmt.Fprintf(b, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
}
