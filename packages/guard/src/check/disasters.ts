// Destructive commands. They are denied without asking, anywhere in a line.
import { posix } from 'node:path'
import { OPAQUE, programNameOf } from '../programs/wrappers.ts'
import type { Argument, SimpleCommand } from '../words/types.ts'

export interface DisasterOptions {
  readonly home: string
  readonly roots: readonly string[]
}

const SYSTEM = new Set(
  '/ /Applications /bin /boot /dev /etc /home /lib /lib32 /lib64 /Library /opt /proc /root /sbin /srv /sys /System /usr /Users /var /usr/bin /usr/lib /usr/local /var/lib /private /Volumes /mnt /media'.split(
    ' ',
  ),
)

const DISK = /^\/dev\/(r?disk\d|[shv]d[a-z]|xvd[a-z]|nvme\d|mmcblk\d|mapper\/|dm-\d|md\d|k?mem$|port$|sr\d)/

/** The reason why the command is destructive in every case, or `undefined`. */
export function disasterOf(command: SimpleCommand, options: DisasterOptions): string | undefined {
  for (const { operator, targets } of command.redirections) {
    for (const { value } of targets) {
      if (value === undefined || operator.startsWith('<&') || operator === '<') continue
      if (DISK.test(value)) return `It writes over the disk ${value}.`
      if (value === '/proc/sysrq-trigger') return 'It stops the machine.'
    }
  }
  const found = disasterIn(command.words, command.directories, options)
  const name = programNameOf(command.words)
  if (found !== undefined || name === undefined || !Object.hasOwn(OPAQUE, name)) return found
  // Where the options of a wrapper are not followed, the inner program may begin at any word.
  for (let index = 1; index < command.words.length; index += 1) {
    const inner = disasterIn(command.words.slice(index), command.directories, options)
    if (inner !== undefined) return inner
  }
  return undefined
}

function disasterIn(
  words: readonly Argument[],
  directories: readonly string[],
  options: DisasterOptions,
): string | undefined {
  const name = programNameOf(words)?.replace(/^.*\//, '')
  if (name === undefined) return undefined
  const args = words.slice(1)
  const texts = args.map((it) => it.value ?? it.prefix)
  const recursive = texts.some((it) => /^-[a-zA-Z]*[rR]/.test(it) || it === '--recursive')
  const vital = (except?: 'workspace'): string | undefined =>
    args
      .filter((it) => !it.prefix.startsWith('-'))
      .map((it) => vitalPlace(it, directories, options, except))
      .find((it) => it !== undefined)

  if (/^(mkfs|mke2fs|newfs|mkswap|wipefs|blkdiscard)(\..*|_.*)?$/.test(name)) return `${name} makes a disk empty.`
  switch (name) {
    case 'rm': {
      if (texts.includes('--no-preserve-root')) return 'It would delete the root of the file system.'
      const place = recursive ? vital() : undefined
      return place === undefined ? undefined : `It deletes ${place} and everything in it.`
    }
    case 'chmod':
    case 'chown':
    case 'chgrp':
    case 'setfacl':
    case 'chattr': {
      const place = recursive ? vital('workspace') : undefined
      return place === undefined ? undefined : `It changes the rights of everything in ${place}.`
    }
    case 'mv': {
      const place = args
        .slice(0, -1)
        .map((it) => vitalPlace(it, directories, options))
        .find((it) => it !== undefined)
      return place === undefined ? undefined : `It moves ${place} away.`
    }
    case 'rsync': {
      const place =
        texts.some((it) => it.startsWith('--del')) && args.length > 0
          ? vitalPlace(args.at(-1)!, directories, options)
          : undefined
      return place === undefined ? undefined : `It deletes what is in ${place}.`
    }
    case 'find': {
      const deletes = texts.some(
        (it, index) =>
          it === '-delete' ||
          (/^-(exec|ok)(dir)?$/.test(it) && /^(.*\/)?(rm|shred|unlink)$/.test(texts[index + 1] ?? '')),
      )
      // A search that is narrowed down to old or named files may be intended.
      const narrowed = texts.some((it) => /^-(i?name|i?path|i?regex|[acm](time|min)|user|size|empty|newer)$/.test(it))
      const end = args.findIndex((it) => /^[-(!]/.test(it.prefix))
      const place = args
        .slice(0, end < 0 ? undefined : end)
        .map((it) => vitalPlace(it, directories, options))
        .find((it) => it !== undefined)
      return deletes && !narrowed && place !== undefined ? `It deletes everything in ${place}.` : undefined
    }
    case 'dd':
    case 'tee':
    case 'cp':
    case 'shred':
    case 'truncate':
    case 'install': {
      const disk = texts
        .map((it) => it.replace(/^of=/, ''))
        .find((it, index) => DISK.test(it) && (name !== 'dd' || texts[index]!.startsWith('of=')))
      return disk === undefined || (name === 'cp' && texts.at(-1) !== disk)
        ? undefined
        : `It writes over the disk ${disk}.`
    }
    case 'fdisk':
    case 'sfdisk':
    case 'sgdisk':
    case 'parted':
    case 'cryptsetup':
    case 'diskutil': {
      const reads = texts.some((it) => /^(-l|--list|-p|--print|print|list|info|status|isLuks|luksDump)$/.test(it))
      return !reads && (texts.some((it) => DISK.test(it)) || /^(erase|partition|zero)/.test(texts[0] ?? ''))
        ? `${name} changes the partitions of a disk.`
        : undefined
    }
    case 'kill':
      return texts.length > 1 && texts.at(-1) === '-1' ? 'It ends every process of the user.' : undefined
    case 'shutdown':
    case 'reboot':
    case 'halt':
    case 'poweroff':
    case 'killall5':
      return 'It stops the machine.'
    case 'init':
    case 'telinit':
      return /^[06]$/.test(texts[0] ?? '') ? 'It stops the machine.' : undefined
    case 'systemctl':
      return texts.some((it) => /^(poweroff|reboot|halt|kexec|emergency|rescue|suspend|hibernate)$/.test(it))
        ? 'It stops the machine.'
        : undefined
    default:
      return undefined
  }
}

/** The name of the place if the machine, the person or the workspace would lose everything with it. */
function vitalPlace(
  word: Argument,
  directories: readonly string[],
  { home, roots }: DisasterOptions,
  except?: 'workspace',
): string | undefined {
  const text = word.value ?? everythingIn(word)
  if (text === undefined) return undefined
  const starts = text.startsWith('/') ? ['/'] : directories
  for (const start of starts) {
    // `/*` and `/.` are `/`.
    const place = posix.resolve(start, text.replace(/\/(\.?\*+|\.)$/, '/'))
    if (SYSTEM.has(place) || place === posix.resolve(home)) return place
    if (roots.some((it) => `${posix.resolve(it)}/`.startsWith(`${place}/`) && (!except || posix.resolve(it) !== place)))
      return place
  }
  return undefined
}

/** `/etc/*`, `"$HOME"/*`, `*`: a pattern that leaves nothing out. */
const everythingIn = ({ text, prefix }: Argument): string | undefined =>
  /^[.*]*\*$/.test(text) ? '.' : prefix.endsWith('/') && /\/["']?[.*{},?]*\*[.*{},?]*$/.test(text) ? prefix : undefined
