"""`qornn demo`: the whole way from data to a device, on the digits that come with scikit-learn."""
