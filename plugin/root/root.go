// Package root sets the folder in which the plugins of a server block look for files with relative names. It has
// no part in queries. Start at setup.
package root

import (
	"errors"
	"io/fs"
	"os"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
)

const pluginName = "root"

func init() { plugin.Register(pluginName, setup) }

// settings is what the directive configures.
type settings struct{ path string }

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "PATH", Min: 1, Max: 1, Set: func(s *settings, l *corefile.Line) error {
		s.path = l.Args[0]
		return accessible(s.path)
	}},
})

// accessible is an error if there is something at path that cannot be looked at. What is not there yet may come.
func accessible(path string) error {
	_, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		log.NewWithPlugin(pluginName).Warningf("Root path does not exist: %s", path)
	case err != nil:
		return errors.New("unable to access root path '" + path + "': " + err.Error())
	}
	return nil
}

// setup runs before all other plugins' setups, so that they find the folder wherever root stands in the block.
func setup(c *caddy.Controller) error {
	var s settings
	if err := directive.Parse(c, &s); err != nil {
		return err
	}
	dnsserver.GetConfig(c).Root = s.path
	return nil
}
