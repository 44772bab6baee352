package webconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v2"
	"golang.org/x/crypto/bcrypt"
)

// file is what a web configuration file says. It is not changed once it was read.
type file struct {
	TLS tlsPart `yaml:"tls_server_config"`
	// HTTP is about TLS connections, but for the headers, which all responses get.
	HTTP struct {
		HTTP2   bool              `yaml:"http2"` // true unless the file says otherwise
		Headers map[string]string `yaml:"headers,omitempty"`
	} `yaml:"http_server_config"`
	// Rate lets Burst requests through at once, and one more each Interval. An interval of 0 is no limit.
	Rate struct {
		Burst    int           `yaml:"burst"`
		Interval time.Duration `yaml:"interval"`
	} `yaml:"rate_limit"`
	// Users has bcrypt's hashes of their passwords by their names. Without any, everybody is let in.
	Users map[string]string `yaml:"basic_auth_users"`
}

// headers are those that a file may set, with the values that are allowed; none: any. They are what makes a browser
// careful (RFC 6797 and the like); others are for the handlers to set.
var headers = map[string][]string{
	"Content-Security-Policy":   nil,
	"Strict-Transport-Security": nil,
	"X-Content-Type-Options":    {"nosniff"},
	"X-Frame-Options":           {"deny", "sameorigin"},
	"X-XSS-Protection":          nil,
}

// read reads the file at path. Words that it does not know are errors. Files that it names lie beside it, unless their
// paths are absolute.
func read(path string) (*file, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{TLS: defaultTLS}
	f.HTTP.HTTP2 = true
	if err := yaml.UnmarshalStrict(text, f); err != nil {
		return nil, err
	}
	for name, value := range f.HTTP.Headers {
		allowed, ok := headers[name]
		if !ok {
			return nil, fmt.Errorf("HTTP header %q can not be configured", name)
		}
		if len(allowed) > 0 && !slices.Contains(allowed, value) {
			return nil, fmt.Errorf("invalid value for %s. Expected one of: %q, but got: %q", name, allowed, value)
		}
	}
	// Texts and paths may both stand there, so paths alone are made absolute.
	for _, name := range []*string{&f.TLS.CertFile, &f.TLS.KeyFile, &f.TLS.ClientCAFile} {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(filepath.Dir(path), *name)
		}
	}
	return f, nil
}

// checkUsers reports whether each password is a hash of bcrypt.
func (f *file) checkUsers() error {
	for name, hash := range f.Users {
		if _, err := bcrypt.Cost([]byte(hash)); err != nil {
			return fmt.Errorf("the password of user %s: %w", name, err)
		}
	}
	return nil
}
