package tls

import (
	"context"
	"crypto/tls"
	"sync/atomic"

	"github.com/caddyserver/certmagic"
)

// stored is the certificate of a domain that the storage of an account holds, nil if there is none that can be used.
func stored(a account, domain string) *tls.Certificate {
	storage := &certmagic.FileStorage{Path: a.storage}
	authority := authorityOf(a)
	cert, err := storage.Load(context.Background(), certmagic.StorageKeys.SiteCert(authority, domain))
	if err != nil {
		return nil
	}
	key, err := storage.Load(context.Background(), certmagic.StorageKeys.SitePrivateKey(authority, domain))
	if err != nil {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil // certmagic tells of it when it reads the same files
	}
	return &pair
}

// storage is certmagic's folder of files, with the number of its locks that are held or asked for.
type storage struct {
	certmagic.FileStorage
	locks *atomic.Int32
}

// Lock, TryLock and Unlock implement certmagic.Locker and certmagic.TryLocker.
func (s *storage) Lock(ctx context.Context, name string) error {
	s.locks.Add(1)
	err := s.FileStorage.Lock(ctx, name)
	if err != nil {
		s.locks.Add(-1)
	}
	return err
}

func (s *storage) TryLock(ctx context.Context, name string) (ok bool, err error) {
	s.locks.Add(1)
	if ok, err = s.FileStorage.TryLock(ctx, name); err != nil || !ok {
		s.locks.Add(-1)
	}
	return ok, err
}

func (s *storage) Unlock(ctx context.Context, name string) error {
	defer s.locks.Add(-1)
	return s.FileStorage.Unlock(ctx, name)
}
