package tls

import (
	"fmt"
	"os"
	"sync"
)

// keyLog appends the secrets of connections to a file, so that a program such as Wireshark can read what was sent. It
// is open from start to end of its server.
type keyLog struct {
	path string

	mu     sync.Mutex
	file   *os.File // nil while it is not open
	failed bool     // the last line could not be written
}

func (k *keyLog) open() error {
	file, err := os.OpenFile(k.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("key log: %w", err)
	}
	k.mu.Lock()
	k.file = file
	k.mu.Unlock()
	logger.Warningf("Writing TLS Key Log to %q", k.path)
	return nil
}

func (k *keyLog) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return nil
	}
	err := k.file.Close()
	k.file = nil
	return err
}

// Write appends one line. While the file is not open it is lost: a connection that outlives its server's reload goes on.
// Nor does one fail for a line that cannot be written, as package tls would have it: the disk may be full for long.
func (k *keyLog) Write(line []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return len(line), nil
	}
	_, err := k.file.Write(line)
	if err != nil && !k.failed {
		logger.Warningf("TLS Key Log is incomplete: %s", err)
	}
	k.failed = err != nil
	return len(line), nil
}
