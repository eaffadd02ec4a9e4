package essence

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/bep/imagemeta"

	"harvest/gather/soif"
)

// sumImage summarizes a picture by what its header says of its form, and what
// EXIF, IPTC, XMP and comments say of its content. No pixel is looked at.
func sumImage(w *worker, o *soif.Object, c *content, _ []byte) {
	r, size, err := w.whole(c)
	if err != nil {
		w.limit(c, err.Error())
		return
	}
	d := w.document()
	d.name = c.name
	h := imageHeader(d, &bin{r: r, size: size})
	if format, ok := metaFormats[h.format]; ok {
		w.imageMeta(c, d, &h, io.NewSectionReader(r, 0, size), format)
	}
	if h.format != "" {
		d.extra("Image-Format", h.format)
	}
	if h.width > 0 && h.height > 0 {
		d.extra("Dimensions", fmt.Sprintf("%dx%d", h.width, h.height))
	}
	if h.depth > 0 {
		d.extra("Bits-per-Pixel", strconv.Itoa(h.depth))
	}
	if h.frames > 1 {
		d.extra("Frames", strconv.Itoa(h.frames))
	}
	d.put(w, o, c)
}

// metaFormats are the formats that imagemeta reads.
var metaFormats = map[string]imagemeta.ImageFormat{
	"JPEG": imagemeta.JPEG, "TIFF": imagemeta.TIFF, "PNG": imagemeta.PNG, "WebP": imagemeta.WebP, "HEIF": imagemeta.HEIF, "AVIF": imagemeta.AVIF,
}

// maxTag bounds a value of metadata.
const maxTag = 16 << 10

// imageMeta reads EXIF, IPTC and XMP. A header that its reader cannot take gives
// what was read before.
func (w *worker) imageMeta(c *content, d *document, h *header, r io.ReadSeeker, format imagemeta.ImageFormat) {
	defer func() {
		if p := recover(); p != nil {
			w.limit(c, fmt.Sprintf("metadata: %v", p))
		}
	}()
	tags := make(map[string]string)
	var packet bytes.Buffer
	res, err := imagemeta.Decode(imagemeta.Options{
		R: r, ImageFormat: format, Sources: imagemeta.EXIF | imagemeta.IPTC | imagemeta.XMP | imagemeta.CONFIG,
		LimitNumTags: 2000, LimitTagSize: maxTag,
		ShouldHandleTag: func(t imagemeta.TagInfo) bool { return telling[t.Tag] != "" },
		HandleTag: func(t imagemeta.TagInfo) error {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if name := telling[t.Tag]; name != "" && tags[name] == "" {
				tags[name] = exifText(t.Value)
			} else if t.Tag == "Keywords" && len(d.keywords) < 100 {
				d.keywords = append(d.keywords, exifText(t.Value))
			}
			return nil
		},
		HandleXMP: func(r io.Reader) error {
			_, err := io.Copy(&packet, io.LimitReader(r, 1<<20))
			if err == nil {
				_, err = io.Copy(io.Discard, r) // which it asks for
			}
			return err
		},
	})
	if err != nil && w.ctx.Err() == nil {
		w.step(c, "summarize", "cut", "metadata: "+err.Error())
	}
	if h.width == 0 {
		h.width, h.height = res.ImageConfig.Width, res.ImageConfig.Height
	}
	x := xmpPhoto(d, packet.Bytes())
	for name, v := range x {
		if tags[name] == "" {
			tags[name] = v
		}
	}
	d.photo(tags)
}

// telling are the tags that are kept, by their names in EXIF and IPTC.
var telling = map[string]string{
	"Make": "Camera-Make", "Model": "Camera-Model", "LensModel": "Lens", "DateTimeOriginal": "date", "DateTime": "time", "ModifyDate": "time", "CreateDate": "date2",
	"DateTimeDigitized": "date2",
	"ImageDescription":  "description", "Artist": "author", "Copyright": "Rights", "Software": "generator", "DocumentName": "title", "XPTitle": "title",
	"UserComment": "comment", "Orientation": "Orientation",
	"GPSLatitude": "lat", "GPSLongitude": "long", "GPSLatitudeRef": "latref", "GPSLongitudeRef": "longref",
	"ObjectName": "title", "Caption-Abstract": "description", "By-line": "author", "CopyrightNotice": "Rights", "Headline": "headline",
	"Keywords": "keywords", "City": "City", "Country-PrimaryLocationName": "Country", "Credit": "Credit", "Source": "Source", "DateCreated": "day",
}

// exifText is a value of a tag as text.
func exifText(v any) string {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case []byte:
		s = string(decode(v, ""))
	case []string:
		s = strings.Join(v, ", ")
	case float64:
		s = strconv.FormatFloat(v, 'f', 6, 64)
	default:
		s = fmt.Sprint(v)
	}
	return strings.TrimSpace(strings.Trim(string(cutText([]byte(s), maxTag)), "\x00"))
}

// photo makes attributes of the tags of a picture.
func (d *document) photo(tags map[string]string) {
	set := func(s *string, names ...string) {
		for _, n := range names {
			if v := tags[n]; v != "" && v != "0000:00:00 00:00:00" {
				*s = v
				return
			}
		}
	}
	set(&d.title, "title", "headline")
	set(&d.description, "description", "comment")
	set(&d.author, "author")
	set(&d.generator, "generator")
	if k := tags["keywords"]; k != "" {
		d.keywords = append([]string{k}, d.keywords...)
	}
	taken := ""
	set(&taken, "date", "date2", "time", "day")
	if taken != "" {
		d.created = exifTime(taken)
	}
	if t := tags["time"]; t != "" {
		d.modified = exifTime(t)
	}
	for _, name := range []string{"Camera-Make", "Camera-Model", "Lens", "Rights", "City", "Country", "Credit", "Source"} {
		d.extra(name, tags[name])
	}
	if lat, long := tags["lat"], tags["long"]; lat != "" && long != "" {
		d.extra("Location", signed(lat, tags["latref"], "S")+" "+signed(long, tags["longref"], "W"))
	}
}

// signed is an angle, with a minus if it is of the other hemisphere.
func signed(angle, ref, minus string) string {
	if strings.HasPrefix(ref, minus) && !strings.HasPrefix(angle, "-") {
		return "-" + angle
	}
	return angle
}

// exifTime is a time such as 2003:12:14 12:01:44, as isoTime has it.
func exifTime(s string) string {
	if len(s) >= 10 && s[4] == ':' && s[7] == ':' {
		s = s[:4] + "-" + s[5:7] + "-" + s[8:]
	} else if len(s) == 8 && strings.Trim(s, "0123456789") == "" {
		s = s[:4] + "-" + s[4:6] + "-" + s[6:]
	}
	return isoTime(s)
}

// xmpPhoto reads a packet of XMP: what any document may say goes to d, what
// pictures say is returned by the names of telling.
func xmpPhoto(d *document, b []byte) map[string]string {
	if len(b) == 0 {
		return nil
	}
	b = decode(b, "")
	xmp(d, b)
	m := make(map[string]string)
	s := &xmlScanner{b: b}
	for k := s.next(); k != xmlEnd; k = s.next() {
		if k != xmlOpen {
			continue
		}
		switch name := string(s.name); name {
		case "Description":
			for _, a := range [][2]string{{"tiff:Make", "Camera-Make"}, {"tiff:Model", "Camera-Model"}, {"exif:DateTimeOriginal", "date"}, {"photoshop:DateCreated", "date2"},
				{"photoshop:City", "City"}, {"photoshop:Country", "Country"}, {"photoshop:Headline", "headline"}, {"photoshop:Credit", "Credit"}} {
				if v := s.attr(a[0]); v != "" {
					m[a[1]] = v
				}
			}
		case "Make":
			m["Camera-Make"] = s.inner()
		case "Model":
			m["Camera-Model"] = s.inner()
		case "DateTimeOriginal":
			m["date"] = s.inner()
		case "DateCreated":
			m["date2"] = s.inner()
		case "City", "Country", "Credit":
			m[name] = s.inner()
		}
	}
	if d.description == "" { // dc:description is what the picture shows
		d.description, d.subject = d.subject, ""
	}
	return m
}
