package coremain

import (
	"errors"
	"flag"
	"io"
	"os"
	"strings"

	"github.com/coredns/coredns/core/custom"
)

// What build is told.
var building struct {
	custom.Options
	tags string
}

func buildFlags(f *flag.FlagSet) {
	f.StringVar(&building.Source, "source", "", "Folder with the sources of the server")
	f.StringVar(&building.Main, "version", "", "Version of the module "+custom.Module+" to fetch instead, as the environment of go says from where")
	f.StringVar(&building.Output, "o", "coredns", "File to write")
	f.StringVar(&building.tags, "tags", "grpcnotrace", "Build tags")
}

// buildCommand is coredns build: a server with more plugins. It needs the go command.
func buildCommand(args []string, _ io.Writer) (int, error) {
	plugins, err := custom.ParsePlugins(strings.Join(args, " "))
	if err != nil {
		return 2, err
	}
	o := building.Options
	if (o.Source == "") == (o.Main == "") {
		return 2, errors.New("either -source or -version tells where the sources of the server are")
	}
	o.Log = os.Stderr
	o.Args = []string{"-trimpath", "-tags", building.tags, "-ldflags", "-s -w"}
	if err := custom.Build(plugins, o); err != nil {
		return 1, err
	}
	return 0, nil
}
