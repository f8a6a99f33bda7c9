package boot

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestParseCmdline(t *testing.T) {
	got, err := ParseCmdline("console=ttyS0 aenv.root=/dev/vdb aenv.rootfstype=erofs aenv.ip=169.254.0.21/30 aenv.gw=169.254.0.22 aenv.dns=1.1.1.1,8.8.8.8 quiet\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Root: "/dev/vdb", RootFSType: "erofs",
		Address: netip.MustParsePrefix("169.254.0.21/30"), Gateway: netip.MustParseAddr("169.254.0.22"),
		DNS: []netip.Addr{netip.MustParseAddr("1.1.1.1"), netip.MustParseAddr("8.8.8.8")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseCmdlineDefaults(t *testing.T) {
	got, err := ParseCmdline("")
	if err != nil || got.Root != "/dev/vda" || got.RootFSType != "ext4" || got.Address.IsValid() || got.DNS != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseCmdlineRefusesBadAddresses(t *testing.T) {
	for _, line := range []string{"aenv.ip=1.2.3.4", "aenv.gw=here", "aenv.dns=1.1.1.1,nowhere"} {
		if _, err := ParseCmdline(line); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func FuzzParseCmdline(f *testing.F) {
	f.Add("aenv.ip=169.254.0.21/30 aenv.dns=,1.1.1.1")
	f.Add("aenv.root aenv.gw=::1")
	f.Fuzz(func(t *testing.T, line string) {
		config, err := ParseCmdline(line)
		if err != nil {
			return
		}
		for _, address := range config.DNS {
			if !address.IsValid() {
				t.Errorf("%q: an invalid DNS server", line)
			}
		}
	})
}
