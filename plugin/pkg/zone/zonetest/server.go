package zonetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// Servers are the other servers that Serve knows.
var Servers = []string{"knotd", "nsd", "named"}

// Setup is how another server has a zone: of a file, or from a primary. Transfers and notifications are signed.
type Setup struct {
	Zone      string // without the final dot
	File      string // the zone's
	Primary   string // the port of the primary on loopback, "" if the server is the primary itself
	Algorithm string // of the key, as hmac-sha256
	Secret    string // in base64; the key's name is KeyName

	Update bool // the key may update the zone, of which the server is the primary; knotd and named only

	Port int    // that it listens on; 0 means any
	Dir  string // filled in
}

// KeyName is the name of the key that other servers know, without the final dot.
const KeyName = "key.example.org"

// Serve starts a server by its name, or skips the test if it is not there.
func Serve(t testing.TB, name string, s Setup) (addr string, reload func()) {
	t.Helper()
	c := configs[name]
	path := Program(t, name, c.debian)
	s.Dir = loopback.Folder(t)
	if s.Port == 0 {
		s.Port = loopback.Port()
	}
	conf := filepath.Join(s.Dir, "conf")
	var text strings.Builder
	if err := template.Must(template.New(name).Parse(c.text)).Execute(&text, s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", s.Port), Run(t, s.Dir, path, append(c.args, conf)...)
}

// configs is how each server is configured.
var configs = map[string]struct {
	debian string
	args   []string
	text   string
}{
	"knotd": {"knot", []string{"-c"}, `server:
  rundir: "{{.Dir}}"
  listen: 127.0.0.1@{{.Port}}
database:
  storage: "{{.Dir}}"
key:
  - id: key.example.org
    algorithm: {{.Algorithm}}
    secret: {{.Secret}}
acl:
  - id: signed
    key: key.example.org
    action: [transfer, notify{{if .Update}}, update{{end}}]
{{- if .Primary}}
remote:
  - id: primary
    address: 127.0.0.1@{{.Primary}}
    key: key.example.org
{{- end}}
zone:
  - domain: {{.Zone}}
    file: "{{.File}}"
    acl: signed
{{- if .Primary}}
    master: primary
{{- else}}
    zonefile-load: difference
    zonefile-sync: -1
    journal-content: changes
{{- end}}
`},
	"nsd": {"nsd", []string{"-d", "-c"}, `server:
  ip-address: 127.0.0.1@{{.Port}}
  username: ""
  zonesdir: "{{.Dir}}"
  pidfile: "{{.Dir}}/pid"
  xfrdfile: "{{.Dir}}/xfrd"
  zonelistfile: "{{.Dir}}/list"
  database: ""
  server-count: 1
  xfrd-reload-timeout: 0
remote-control:
  control-enable: no
key:
  name: key.example.org
  algorithm: {{.Algorithm}}
  secret: {{.Secret}}
zone:
  name: {{.Zone}}
  zonefile: "{{.File}}"
  provide-xfr: 127.0.0.1 key.example.org
{{- if .Primary}}
  allow-notify: 127.0.0.1 key.example.org
  request-xfr: 127.0.0.1@{{.Primary}} key.example.org
{{- else}}
  store-ixfr: yes
  create-ixfr: yes
{{- end}}
`},
	"named": {"bind9", []string{"-g", "-n", "1", "-c"}, `options {
	directory "{{.Dir}}";
	listen-on port {{.Port}} { 127.0.0.1; };
	listen-on-v6 { none; };
	pid-file "{{.Dir}}/pid";
	session-keyfile "{{.Dir}}/session.key";
	recursion no;
	dnssec-validation no;
	notify no;
	allow-transfer { key key.example.org; };
};
controls { };
key key.example.org { algorithm {{.Algorithm}}; secret "{{.Secret}}"; };
zone "{{.Zone}}" {
	file "{{.File}}";
{{- if .Primary}}
	type secondary;
	masterfile-format text;
	primaries { 127.0.0.1 port {{.Primary}} key key.example.org; };
	allow-notify { key key.example.org; };
{{- else}}
	type primary;
{{- if .Update}}
	allow-update { key key.example.org; };
	check-names ignore;
	check-mx ignore;
	check-integrity no;
{{- else}}
	ixfr-from-differences yes;
{{- end}}
{{- end}}
};
`},
}
