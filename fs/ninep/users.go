package ninep

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"harvest/fs"
	"harvest/fs/ndb"
)

// users are the lines of a users file.
type users []person

type person struct {
	fs.User
	prints []string
}

// readUsers reads a users file; no name, or no such file, is no users.
func readUsers(file string) (users, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	us, err := parseUsers(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return us, nil
}

func parseUsers(text string) (users, error) {
	entries, err := ndb.Parse(text)
	if err != nil {
		return nil, err
	}
	var us users
	for _, e := range entries {
		if p := e.First(); p.Key != "user" || p.Value == "" {
			return nil, e.Errorf(p, "want user=NAME first")
		}
		var k person
		for _, p := range e.Pairs {
			switch p.Key {
			case "user":
				if k.Name != "" {
					return nil, e.Errorf(p, "two users in one line")
				}
				k.Name = p.Value
			case "group":
				k.Groups = append(k.Groups, p.Value)
			case "fingerprint":
				f := plainPrint(p.Value)
				if b, err := hex.DecodeString(f); err != nil || len(b) != sha256.Size {
					return nil, e.Errorf(p, "fingerprint: want 64 hex digits of a SHA-256")
				}
				k.prints = append(k.prints, f)
			case "owner":
				if k.Owner, err = e.Bool(p); err != nil {
					return nil, err
				}
			default:
				return nil, e.Errorf(p, "unknown attribute %s", p.Key)
			}
		}
		us = append(us, k)
	}
	return us, nil
}

// plainPrint is a fingerprint as Fingerprint writes it, without the colons
// and capitals of other programs.
func plainPrint(s string) string {
	s = strings.ToLower(strings.ReplaceAll(s, ":", ""))
	return strings.TrimPrefix(s, "sha256")
}

// named gives the user of that name, nil if there is none.
func (us users) named(name string) *fs.User {
	for i := range us {
		if us[i].Name == name {
			return &us[i].User
		}
	}
	return nil
}

// certified gives the user who has the certificate.
func (us users) certified(der []byte) *fs.User {
	print := Fingerprint(der)
	for i := range us {
		for _, p := range us[i].prints {
			if p == print {
				u := us[i].User
				return &u
			}
		}
	}
	return nobody()
}

// Fingerprint is the SHA-256 of a certificate in DER, in hex.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Certificate reads DIR/tls.pem, a key and a certificate that signs itself,
// and makes it first if it is not there. Server and client use it alike: the
// other side knows it by its fingerprint.
func Certificate(dir string) (*tls.Certificate, error) {
	file := filepath.Join(dir, "tls.pem")
	b, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		b, err = newCertificate(file)
	}
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(b, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &c, nil
}

func newCertificate(file string) ([]byte, error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	name, err := os.Hostname()
	if err != nil {
		name = "harvest"
	}
	t := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(30, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &t, &t, pub, key)
	if err != nil {
		return nil, err
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	b := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
	b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(b); err != nil {
		f.Close()
		os.Remove(file)
		return nil, err
	}
	return b, f.Close()
}
