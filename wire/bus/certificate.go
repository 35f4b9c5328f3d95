package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of a server. It is made once per directory.
type authority struct {
	pem  []byte // the certificate as PEM text
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// openAuthority reads the authority of a directory, and makes one if there is none. Its key and its certificate are in
// one file, so that there are never two that do not belong together.
func openAuthority(dir string) (*authority, error) {
	name := filepath.Join(dir, "ca.pem")
	text, err := readPrivate(name)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newAuthority()
		if err == nil {
			err = writePrivate(name, text)
		}
	}
	if err != nil {
		return nil, err
	}
	a, err := parseAuthority(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: restore it, or remove it and give out new credentials", name, err)
	}
	return a, nil
}

func parseAuthority(text []byte) (*authority, error) {
	key, rest := pem.Decode(text)
	cert, _ := pem.Decode(rest)
	if key == nil || cert == nil {
		return nil, errors.New("there is no key with a certificate after it")
	}
	a := &authority{pem: pem.EncodeToMemory(cert)}
	var err error
	if a.key, err = x509.ParseECPrivateKey(key.Bytes); err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(cert.Bytes)
	return a, err
}

// validity is that of all certificates: they end with the directory, not by a date.
const validity = 30 * 365 * 24 * time.Hour

func newAuthority() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "tensile state directory"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...), nil
}

// issue makes a certificate for a server that listens on a host, and is called so or localhost.
func (a *authority) issue(host string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	form := &x509.Certificate{
		SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "tensile controller"},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	form.DNSNames, form.IPAddresses = namesOf(host)
	cert, err := x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}, err
}

// namesOf returns the names and addresses by which a listening host is reached: all of the machine's for 0.0.0.0.
func namesOf(host string) (names []string, ips []net.IP) {
	names, ips = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	ip := net.ParseIP(host)
	switch {
	case host == "" || ip != nil && ip.IsUnspecified():
		if name, err := os.Hostname(); err == nil && name != "localhost" {
			names = append(names, name)
		}
		addresses, _ := net.InterfaceAddrs() // without them: localhost alone
		for _, address := range addresses {
			if n, ok := address.(*net.IPNet); ok && !n.IP.IsLoopback() {
				ips = append(ips, n.IP)
			}
		}
	case ip != nil:
		ips = append(ips, ip)
	case host != "localhost":
		names = append(names, host)
	}
	return names, ips
}

func newSerial() *big.Int {
	var bytes [16]byte
	rand.Read(bytes[:]) // never fails
	bytes[0] &= 0x7f
	return new(big.Int).SetBytes(bytes[:])
}
