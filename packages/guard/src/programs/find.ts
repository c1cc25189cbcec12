// `find`: tests and actions that only look and print. The commands of -exec are checked separately.
import type { Argument } from '../words/types.ts'

const PLAIN = new Set(
  '-print -print0 -prune -empty -depth -d -xdev -mount -ls -quit -readable -writable -executable -true -false -daystart -noleaf -nogroup -nouser -not ! -a -and -o -or ( ) , -ignore_readdir_race -nowarn -warn'.split(
    ' ',
  ),
)

const WITH_TEXT = new Set(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -used -perm -user -group -uid -gid -links -inum -fstype -maxdepth -mindepth -printf -regextype -newermt -newerat -newerct'.split(
    ' ',
  ),
)

const WITH_FILE = new Set(['-newer', '-anewer', '-cnewer', '-samefile'])

/** Returns what is wrong, or the folders and files that are looked at. */
export function checkFind(words: readonly Argument[]): string | readonly Argument[] {
  const places: Argument[] = []
  let expression = false
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index]!
    const text = word.value
    if (!expression && (text === '-P' || text === '-E' || text === '--')) continue
    // A value that is not known could begin an expression, such as -delete.
    if (text === undefined) {
      if (expression || word.splits || !/^[^-(!,]/.test(word.prefix)) return `${word.text} may be an action.`
      places.push(word)
      continue
    }
    if (!expression && !/^[-(!,]/.test(text)) {
      places.push(word)
      continue
    }
    expression = true
    if (PLAIN.has(text)) continue
    if (WITH_TEXT.has(text) || WITH_FILE.has(text)) {
      index += 1
      const value = words[index]
      if (value === undefined || value.splits) return `${text} lacks its value.`
      // If another version of find takes no value here, this would be an action.
      if (/^-[A-Za-z]/.test(value.value ?? value.prefix)) return `${text} is followed by ${value.text}.`
      if (WITH_FILE.has(text)) places.push(value)
      continue
    }
    if (text === '-exec') {
      const end = words.findIndex(
        (it, at) => at > index && (it.value === ';' || (it.value === '+' && words[at - 1]!.value === '{}')),
      )
      if (end < 0 || words.slice(index, end).some((it) => it.splits)) return 'The command of -exec has no clear end.'
      index = end
      continue
    }
    return `${text} does more than look, or is not known.`
  }
  return places
}
