// Normalises the many ways to write a path on Windows. A path that is not understood is inside no folder.
import { win32 } from 'node:path'

const DEVICE = /^(con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|:|$)/i

/**
 * The absolute path in the form `C:\folder\file` or `\\server\share\file`, or why it has none: a path relative to a
 * drive or without one depends on state that cannot be seen; streams and devices are not files of a folder.
 */
export function normaliseWindows(path: string, cwd: string): { path: string } | { problem: string } {
  let text = path.replaceAll('/', '\\')
  const extended = /^\\\\\?\\(UNC\\)?(.*)$/is.exec(text)
  if (extended) {
    const [, unc, rest = ''] = extended
    if (unc === undefined && !/^[a-z]:\\/i.test(rest))
      return { problem: 'The path names a device or a volume by its identifier.' }
    // Behind \\?\ Windows takes dots literally; nothing honest writes them there.
    if (rest.split('\\').some((it) => it === '.' || it === '..'))
      return { problem: 'The path has dots behind \\\\?\\.' }
    text = unc === undefined ? rest : `\\\\${rest}`
  }
  if (text.startsWith('\\\\.\\') || text.startsWith('\\??\\')) return { problem: 'The path names a device.' }
  if (/^[a-z]:(?!\\)/i.test(text)) return { problem: 'The path is relative to the current folder of a drive.' }
  if (/^\\(?!\\)/.test(text)) return { problem: 'The path has no drive.' }
  if (/^\\\\(?![^\\]+\\[^\\]+)/.test(text)) return { problem: 'The network path names no share.' }

  const absolute = win32.resolve(cwd, text)
  if (!/^([a-z]:\\|\\\\[^\\]+\\[^\\]+)/i.test(absolute)) return { problem: 'The current folder has no drive.' }
  for (const segment of absolute.split('\\').slice(1)) {
    if (segment.includes(':')) return { problem: 'The path names a stream of a file.' }
    if (DEVICE.test(segment)) return { problem: 'The path names a device.' }
    if (/~[0-9]/.test(segment)) return { problem: 'The path may use a short name (like PROGRA~1) for another file.' }
  }
  // Windows drops dots and blanks at the end of a name, so `.env.` is `.env`.
  const trimmed = absolute
    .split('\\')
    .map((it) => it.replace(/[. ]+$/, ''))
    .join('\\')
  return { path: /^[a-z]:$/i.test(trimmed) ? `${trimmed}\\` : trimmed }
}
