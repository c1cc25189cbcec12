/** A PDF with the given lines on each page, built byte by byte; `encrypted` requires an unknown password. */
export function pdf(
  pages: readonly (readonly string[])[],
  { encrypted = false, title = '', deflate = (_page: string): Buffer | undefined => undefined } = {},
): Uint8Array {
  const objects: string[] = []
  const add = (body: string): number => objects.push(body)
  add('<< /Type /Catalog /Pages 2 0 R >>')
  add('')
  const font = add('<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>')
  const kids = pages.map((lines) => {
    const text = lines.map((it, n) => `BT /F1 12 Tf 72 ${720 - n * 14} Td (${it}) Tj ET`).join('\n')
    const deflated = deflate(text)?.toString('latin1')
    const stream = deflated ?? text
    const filter = deflated === undefined ? '' : '/Filter /FlateDecode'
    const content = add(`<< /Length ${stream.length} ${filter} >>\nstream\n${stream}\nendstream`)
    return add(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${content} 0 R /Resources << /Font << /F1 ${font} 0 R >> >> >>`,
    )
  })
  objects[1] = `<< /Type /Pages /Kids [${kids.map((it) => `${it} 0 R`).join(' ')}] /Count ${kids.length} >>`
  const info = add(`<< /Title (${title}) >>`)
  const lock = encrypted
    ? `/Encrypt << /Filter /Standard /V 1 /R 2 /O <${'41'.repeat(32)}> /U <${'42'.repeat(32)}> /P -4 >> /ID [<${'43'.repeat(16)}> <${'43'.repeat(16)}>]`
    : ''
  let file = '%PDF-1.4\n'
  const offsets = objects.map((body, n) => {
    const offset = file.length
    file += `${n + 1} 0 obj\n${body}\nendobj\n`
    return offset
  })
  const table = offsets.map((it) => `${String(it).padStart(10, '0')} 00000 n \n`).join('')
  const count = objects.length + 1
  file += `xref\n0 ${count}\n0000000000 65535 f \n${table}trailer\n<< /Size ${count} /Root 1 0 R /Info ${info} 0 R ${lock} >>\nstartxref\n${file.length}\n%%EOF`
  return new Uint8Array(Buffer.from(file, 'latin1'))
}
