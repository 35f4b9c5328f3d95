package sidecar

import (
	"bufio"
	"net"
	"testing"
)

// A process comes in by the pair of sockets once it has said something, which is heard also after Close; without a word
// it never comes. Those that come by the address are in TestScripts/join: a connection of our own is the door's end.
func TestOpenDoor(t *testing.T) {
	for _, says := range []bool{false, true} {
		d, err := OpenDoor()
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string]bool)
		if says {
			want["by pair\n"] = true
			if _, err := d.Theirs().WriteString("by pair\n"); err != nil {
				t.Fatal(err)
			}
		}
		d.Close()
		for c := range d.Joined() {
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil || !want[line] {
				t.Errorf("heard %q (%v)", line, err)
			}
			delete(want, line)
			c.Close()
		}
		if len(want) > 0 {
			t.Errorf("not heard: %v", want)
		}
		d.Theirs().Close()
		if _, err := net.Dial("unix", d.Address()); err == nil {
			t.Error("the door is open")
		}
	}
}
