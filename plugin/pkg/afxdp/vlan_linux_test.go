package afxdp

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/hostaddrs/linktest"
)

// VLANs of an interface are found above it, on whatever stands there.
func TestTagged(t *testing.T) {
	for _, tc := range []struct {
		name  string
		files map[string]string // under the directory of interfaces, with what is in them; directories have none
		want  bool
	}{
		{"nothing above", map[string]string{"eth0/uevent": "INTERFACE=eth0\n"}, false},
		{"a VLAN", map[string]string{"eth0/upper_eth0.10/": "", "eth0.10/uevent": "DEVTYPE=vlan\nINTERFACE=eth0.10\n"}, true},
		{"a VLAN of another one", map[string]string{"eth1/upper_eth1.10/": "", "eth1.10/uevent": "DEVTYPE=vlan\n", "eth0/": ""}, false},
		{"another kind", map[string]string{"eth0/upper_m/": "", "m/uevent": "DEVTYPE=macvlan\nINTERFACE=m\n"}, false},
		{"a bond's", map[string]string{"eth0/upper_bond0/": "", "bond0/uevent": "DEVTYPE=bond\n",
			"bond0/upper_a/": "", "bond0/upper_b/": "", "b/uevent": "DEVTYPE=vlan\n"}, true},
		{"a bridge", map[string]string{"eth0/upper_br0/": "", "br0/bridge/vlan_filtering": "0\n"}, false},
		{"a bridge that knows of them", map[string]string{"eth0/upper_br0/": "", "br0/bridge/vlan_filtering": "1\n"}, true},
	} {
		root := t.TempDir()
		lay(t, root, tc.files)
		if got := tagged(root, "eth0"); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// lay lays files out under root.
func lay(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, name)
		dir := filepath.Dir(path)
		if name[len(name)-1] == '/' {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Cards, and links between namespaces, take tags off, unless they are told not to. Who stands on others never has tags.
func TestSees(t *testing.T) {
	linktest.Own(t)
	const vlan = "DEVTYPE=vlan\n"
	root := t.TempDir()
	lay(t, root, map[string]string{
		"none0/": "", "see0/upper_v/": "", "lo/upper_v/": "", "v/uevent": vlan,
		"bond0/lower_eth0/": "", "bond0/upper_v/": "",
	})
	see := func(name string) bool {
		d := &Device{}
		d.name.Store(&name)
		return d.sees(root)
	}
	linktest.IP(t, "link add see0 type veth peer none0")
	for name, want := range map[string]bool{"see0": false, "none0": true, "lo": true, "bond0": false} {
		if got := see(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if out, err := exec.Command("ethtool", "-K", "see0", "rxvlan", "off").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	if !see("see0") {
		t.Error("see0, which leaves tags where they are: false")
	}
}
