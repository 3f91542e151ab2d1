/* list_options.c: print every option of the library as a table in Markdown.
 *   cc list_options.c $(pkg-config --cflags --libs cape) -o list_options && ./list_options */
#include <cape/cape.h>
#include <stdio.h>

/* A cell of the table, where a bar has to be escaped. */
static void print_cell(const char* text) {
  printf("| ");
  for (; *text; ++text) printf(*text == '|' ? "\\|" : "%c", *text);
  printf(" ");
}

int main(void) {
  printf(
      "| Option | Type | Default | Range | What it does | Source |\n|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < cape_option_count(); ++i) {
    cape_option_desc d = {.struct_size = sizeof d};
    if (cape_option_info(&d, i) != CAPE_OK) return fprintf(stderr, "%s\n", cape_last_error()), 1;
    const char* cells[] = {d.key, d.type, d.default_value, d.range, d.doc, d.source};
    for (size_t k = 0; k < sizeof cells / sizeof *cells; ++k) print_cell(cells[k]);
    printf("|\n");
  }
}
