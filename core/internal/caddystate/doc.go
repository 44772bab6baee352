// Package caddystate reaches what Caddy keeps for itself, and a server that reloads has to put right: the commands of
// the directive on (hooks.go), the list of what runs (instances.go), and what another process has handed over
// (upgrade.go).
//
// All of it is reached by the names that Caddy has for it: a version of Caddy that has others does not link. Start at
// ClaimHooks.
package caddystate
