package dup

import "strings"

// Names of months and of days of the week, as calendars have them: pages that
// differ in these only say the same. That some are other words too ("may") does
// not matter: it takes more than a word for pages to be alike.
const dateNames = `january february march april may june july august september october november december
jan feb mar apr jun jul aug sep sept oct nov dec
monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun
januar jänner februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag
janvier février mars avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi samedi dimanche
enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre lunes martes miércoles jueves viernes sábado domingo
gennaio febbraio aprile maggio giugno luglio settembre ottobre novembre dicembre lunedì martedì mercoledì giovedì venerdì sabato domenica
janeiro fevereiro março maio junho julho setembro outubro novembro dezembro segunda terça quarta quinta sexta
januari februari maart mei augustus maandag dinsdag woensdag donderdag vrijdag zaterdag zondag`

// dateHashes are those of the names, and dateMaybe has those that a hash may be of.
var dateHashes, dateMaybe = func() (map[uint64]struct{}, *[1 << 12]bool) {
	all, maybe := make(map[uint64]struct{}), new([1 << 12]bool)
	for name := range strings.FieldsSeq(dateNames) {
		h := uint64(fnvOffset)
		for i := range len(name) {
			h = (h ^ uint64(name[i])) * fnvPrime
		}
		all[h] = struct{}{}
		maybe[h>>52] = true
	}
	return all, maybe
}()

// isDateName reports whether a word without digits, of which this is the hash, is
// one of the names.
func isDateName(h uint64) bool {
	if !dateMaybe[h>>52] {
		return false
	}
	_, ok := dateHashes[h]
	return ok
}
