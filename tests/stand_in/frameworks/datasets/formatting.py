def query_table(table, key, indices=None):
    return table[key]


def format_table(table, key, formatter, format_columns=None, output_all_columns=False):
    return table
