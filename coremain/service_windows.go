package coremain

import (
	"flag"
	"log"

	"github.com/coredns/caddy"
	"golang.org/x/sys/windows/svc"
)

var windowsService bool

func init() {
	flag.BoolVar(&windowsService, "windows-service", false, "Run as a Windows service")
}

// runAsService runs the server under the service manager, if the flag asks for it and
// the manager started the process. It reports whether it did.
func runAsService() bool {
	if !windowsService {
		return false
	}
	ok, err := svc.IsWindowsService()
	if err != nil || !ok {
		log.Print("[INFO] not started by the service manager: running as a program")
		return false
	}
	if err := svc.Run(CoreName, service{}); err != nil {
		fail(err)
	}
	return true
}

type service struct{}

// Execute starts the server and stops it when the manager says so.
func (service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.StartPending}
	corefile, err := caddy.LoadCaddyfile(serverType)
	if err != nil {
		log.Printf("[ERROR] %v", err)
		return false, 1
	}
	instance, err := caddy.Start(corefile)
	if err != nil {
		log.Printf("[ERROR] %v", err)
		return false, 1
	}
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	for r := range requests {
		switch r.Cmd {
		case svc.Interrogate:
			status <- r.CurrentStatus
		case svc.Stop, svc.Shutdown:
			status <- svc.Status{State: svc.StopPending}
			instance.ShutdownCallbacks()
			caddy.Stop()
			return false, 0
		}
	}
	return false, 0
}
